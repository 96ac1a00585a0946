* The school needs 12 crates a day. A truck costs 9 EUR and brings 2 to 5 crates from one wholesaler.
NAME school
ROWS
 N  cost
 E  crates
 L  load_1
 G  fill_1
 L  load_2
 G  fill_2
 L  load_3
 G  fill_3
 L  load_4
 G  fill_4
 L  load_5
 G  fill_5
 L  load_6
 G  fill_6
 L  load_7
 G  fill_7
 L  load_8
 G  fill_8
COLUMNS
    MARKER    'MARKER'    'INTORG'
    truck_1  cost 9
    truck_1  load_1 -5
    truck_1  fill_1 -2
    truck_2  cost 9
    truck_2  load_2 -5
    truck_2  fill_2 -2
    truck_3  cost 9
    truck_3  load_3 -5
    truck_3  fill_3 -2
    truck_4  cost 9
    truck_4  load_4 -5
    truck_4  fill_4 -2
    truck_5  cost 9
    truck_5  load_5 -5
    truck_5  fill_5 -2
    truck_6  cost 9
    truck_6  load_6 -5
    truck_6  fill_6 -2
    truck_7  cost 9
    truck_7  load_7 -5
    truck_7  fill_7 -2
    truck_8  cost 9
    truck_8  load_8 -5
    truck_8  fill_8 -2
    MARKER    'MARKER'    'INTEND'
    buy_1  crates 1
    buy_1  load_1 1
    buy_1  fill_1 1
    buy_2  crates 1
    buy_2  load_2 1
    buy_2  fill_2 1
    buy_3  crates 1
    buy_3  load_3 1
    buy_3  fill_3 1
    buy_4  crates 1
    buy_4  load_4 1
    buy_4  fill_4 1
    buy_5  crates 1
    buy_5  load_5 1
    buy_5  fill_5 1
    buy_6  crates 1
    buy_6  load_6 1
    buy_6  fill_6 1
    buy_7  crates 1
    buy_7  load_7 1
    buy_7  fill_7 1
    buy_8  crates 1
    buy_8  load_8 1
    buy_8  fill_8 1
RHS
    rhs  crates  12
BOUNDS
 BV bound  truck_1
 BV bound  truck_2
 BV bound  truck_3
 BV bound  truck_4
 BV bound  truck_5
 BV bound  truck_6
 BV bound  truck_7
 BV bound  truck_8
ENDATA
