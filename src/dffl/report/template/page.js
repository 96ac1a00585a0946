"use strict";
(() => {
  const find = (id) => document.getElementById(id);

  // Tables: a press on a heading sorts, another one turns the order. Cells without a number stay at the end.
  const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const shown = (cell) => cell.dataset.v !== undefined ? cell.dataset.v : cell.textContent.trim();
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, place) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const numeric = head.classList.contains("number");
      const rows = [...body.rows].map((row, at) => ({ row, at, key: shown(row.cells[place]) }));
      rows.sort((a, b) => {
        if ((a.key === "") !== (b.key === "")) return a.key === "" ? 1 : -1;
        const way = numeric ? a.key - b.key : order.compare(a.key, b.key);
        return (down ? -way : way) || a.at - b.at;
      });
      heads.forEach((one) => one.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows.map((one) => one.row));
    }));
  }

  // The table of clients: by a text anywhere in the row, and by how the client stands.
  const search = find("client-filter"), standing = find("client-standing"), count = find("client-count");
  const rows = [...find("client-table").tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const filter = () => {
    const words = search.value.trim().toLowerCase().split(/\s+/), wanted = standing ? standing.value : "";
    let left = 0;
    for (const row of rows) {
      const fits = words.every((word) => texts.get(row).includes(word)) && (!wanted || row.dataset.standing === wanted);
      row.hidden = !fits;
      left += fits;
    }
    count.textContent = `${left} of ${rows.length} ${rows.length === 1 ? "client" : "clients"}`;
  };
  search.addEventListener("input", filter);
  if (standing) standing.addEventListener("change", filter);

  // The charts: the library is unpacked first.
  const waiting = (text) => document.querySelectorAll(".waiting").forEach((one) => { one.textContent = text; });
  const unpack = async () => {
    const bytes = Uint8Array.from(atob(find("library").textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  };
  const charts = JSON.parse(find("charts").textContent), places = {};
  const narrow = () => document.documentElement.clientWidth < 640;
  // Methods that are shown are placed next to each other within a client's row, not on top of each other.
  const lanes = (traces) => {
    const seen = traces.filter((trace) => trace.visible === true).length;
    let lane = 0;
    return traces.map((trace) => {
      const offset = trace.visible === true && seen > 1 ? 0.62 * (lane++ / (seen - 1) - 0.5) : 0;
      return trace.y.map((y) => Math.round(y) + offset);
    });
  };
  const draw = async () => {
    const options = { responsive: true, displaylogo: false, displayModeBar: false, typesetMath: false, showTips: false, plotlyServerURL: "" };
    for (const [name, figure] of Object.entries(charts)) {
      const place = find(`chart-${name}`);
      place.textContent = "";
      if (narrow()) {  // names leave room for the points
        const { xaxis, yaxis, meta, annotations } = figure.layout;
        for (const axis of [xaxis, yaxis]) if (axis.ticktext && meta.short.length) axis.ticktext = meta.short;
        if (xaxis.title && xaxis.title.text) xaxis.title.text = xaxis.title.text.split(" (")[0];
        if (name === "changes") annotations[0].text = "\u2190 better";
        if (name === "course") xaxis.nticks = 4;
        figure.layout.font.size = 11;
      }
      if (name === "regrets") lanes(figure.data).forEach((y, at) => { figure.data[at].y = y; });
      await Plotly.newPlot(place, figure.data, figure.layout, options);
      places[name] = place;
    }
  };
  // One client's lines or map, and its table.
  const panels = (group, chosen) => {
    if (group === "decided" && places.decided) axes(chosen ? chosen.value : places.decided.data[0].meta);
    if (!chosen) return;
    chosen.addEventListener("change", () => {
      document.querySelectorAll(`[data-panel=${group}]`).forEach((one) => { one.hidden = one.dataset.client !== chosen.value; });
      show(places[group], (trace) => trace.meta === chosen.value);
      if (group === "decided") axes(chosen.value);
    });
  };
  // Every client has days and items of its own.
  const some = (texts, most) => {
    const every = Math.ceil(texts.length / most), at = texts.map((_, place) => place).filter((place) => place % every === 0);
    return { tickvals: at, ticktext: at.map((place) => texts[place]) };
  };
  const axes = (client) => {
    const [days, items] = places.decided.data.find((trace) => trace.meta === client).customdata;
    const x = some(days, narrow() ? 4 : 8), y = some(items, 24);
    Plotly.relayout(places.decided, { "xaxis.tickvals": x.tickvals, "xaxis.ticktext": x.ticktext, "yaxis.tickvals": y.tickvals, "yaxis.ticktext": y.ticktext });
  };
  const show = (place, wanted) => Plotly.restyle(place, { visible: place.data.map(wanted) });
  const connect = () => {
    const method = find("change-method"), reference = find("change-reference");
    if (method) {
      const change = () => show(places.changes, (trace) => trace.meta === `${method.value}|${reference.value}`);
      method.addEventListener("change", change);
      reference.addEventListener("change", change);
    }
    const boxes = [...document.querySelectorAll("#regret-methods input[value]:not(#regret-log)")];
    const ticked = () => new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    boxes.forEach((box) => box.addEventListener("change", () => {
      const chosen = ticked(), traces = places.regrets.data;
      const next = traces.map((trace) => ({ y: trace.y, visible: chosen.has(trace.meta) }));
      Plotly.restyle(places.regrets, { visible: next.map((one) => one.visible), y: lanes(next) });
    }));
    find("regret-log").addEventListener("change", (event) =>
      Plotly.relayout(places.regrets, { "xaxis.type": event.target.checked ? "log" : "linear", "xaxis.autorange": true }));
    const against = find("saved-against");
    if (against) against.addEventListener("change", () => show(places.saved, (trace) => trace.meta === against.value));
    for (const group of ["course", "decided"]) panels(group, find(`${group}-client`));
    const curve = find("curve-method");
    if (curve) curve.addEventListener("change", () => show(places.curves, (trace) => trace.meta === curve.value));
  };

  // On paper the charts are as wide as a page.
  const PAPER = 680;
  const resize = (width) => Promise.all(Object.values(places).map((place) => Plotly.relayout(place, width ? { width, autosize: false } : { width: null, autosize: true })));
  addEventListener("beforeprint", () => { document.querySelectorAll("details").forEach((one) => { one.open = true; }); resize(PAPER); });
  addEventListener("afterprint", () => resize(null));

  if (typeof DecompressionStream === "undefined") {
    waiting("The charts need a browser of 2023 or later. Every number is in the tables, too.");
    document.body.dataset.charts = "none";
  } else {
    unpack().then(draw).then(() => { connect(); document.body.dataset.charts = "drawn"; });
  }
})();
