"""Over 200 bad inputs of every command: each ends with one line and an exit code, none with a traceback, none writes a file."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dffl.cli import app
from dffl.terminal import Exit

CODES = (Exit.FAILED, Exit.USAGE, Exit.BAD_INPUT)
WRONG_NUMBERS = ("-1", "nan", "inf", "", "1e999", "0x10", "one", "1,5", str(2**70))
RUN = ["energy", "run", "good.csv", "--no-figures", "--no-model", "-q", "-o", "never", "--seeds", "1", "--rounds", "1"]
TRAIN = ["energy", "train", "good.csv", "-q", "-o", "never.dffl"]
DECIDE = ["energy", "decide", "good.dffl", "--features", "tomorrow.csv"]
FETCH = ["energy", "fetch", "eia", "-o", "never.csv", "-q", "--cache", "../downloads"]
SMALL = ["advise", "good.csv", "--quick"]


def options() -> list[list[str]]:
    """Commands that are wrong whatever the files say."""
    wrong = [
        *(
            [command, option, value]
            for command, option in (("demo", "--seed"), ("advise", "--folds"))
            for value in WRONG_NUMBERS
        ),
        *(["demo", "--rounds", value] for value in ("0", *WRONG_NUMBERS)),
        *(["bounds", "--delta", value] for value in ("0", "1", *WRONG_NUMBERS)),
        *(["advise", "--confidence", value] for value in ("0", "1", *WRONG_NUMBERS)),
        *(
            [*RUN, option, value]
            for option in ("--seeds", "--demand-seed", "--weather-lag", "--workers", "--refit")
            for value in WRONG_NUMBERS
        ),
        *([*TRAIN, option, value] for option in ("--rates", "--decisions") for value in ("", "nowhere.toml", ".", "good.csv")),
        *([*TRAIN, "--methods", value] for value in ("", ",", "nothing", "nothing-mse", "[red]")),
        [*TRAIN, "--forecast", "nothing"],
        *([*TRAIN, "--seed", value] for value in WRONG_NUMBERS),
        *(
            [*TRAIN, "--split", value]
            for value in ("", "yesterday", "2024-13-01", "1800-01-01", "9999-01-01", "2024-02-30", "24-1-1")
        ),
        *([*TRAIN, "--method", value] for value in ("", "nothing", "oracle-interp-spo", "[red]", "\x1b[31m", "local ")),
        *([*TRAIN, "--covariates", value] for value in ("", ",", "nothing", "temp_c_mean,nothing", "zone", "price_0", "date")),
        *([*TRAIN, "--cost", value] for value in ("", "nothing", "total+own")),
        *([*TRAIN, "--without", value] for value in ("", "Nowhere", "[/]")),
        *(
            [*TRAIN, "--set", value]
            for value in (
                "",
                "=",
                "rounds",
                "rounds=",
                "rounds=0",
                "rounds=x",
                "nothing=1",
                "loss=x",
                "network=1",
                "hidden=1e9",
                "dtype=float16",
                "tau=-1",
                "seed=None",
                "engine=[]",
            )
        ),
        *([*RUN[:3], "-o", value] for value in ("good.csv", "/dev/null", "/proc/x")),
        *(["energy", "train", "good.csv", "-o", value] for value in (".", "no/where.dffl", "/dev/full/x")),
        *(["energy", "example", "-o", value] for value in (".", "no/where.csv", "x.xlsx", "x", "")),
        *(["demo", "--figure", value] for value in (".", "x", "x.csv", "no/x.png", "", "x.PNG\0")),
        *(
            ["paper", *rest]
            for rest in (
                ["--only", "x"],
                ["--only", "nothing=1"],
                ["--only", "degree=99"],
                ["--only", "=,"],
                ["--workers", "0"],
                ["--show"],
                ["--ray", "nowhere:1"],
                ["--out", "good.csv"],
            )
        ),
        *(["advice-study", *rest] for rest in (["--only", "x"], ["--zones", "nowhere"], ["--workers", "-3"])),
        *(
            [*FETCH, *rest]
            for rest in (
                ["--year", "1800"],
                ["--year", "x"],
                ["--year", "99999"],
                ["--first", "x", "--last", "y"],
                ["--market", "mars"],
                ["--first", "2025-01-01"],
                ["--first", "2025-02-01", "--last", "2025-01-01"],
                ["--kind", "x"],
                ["--year", "2024", "--prices-from", "file:///etc/passwd"],
                ["--year", "2024", "--prices-from", "nowhere"],
                ["--year", "2024", "--prices-from", "http://"],
                ["--year", "2024", "--prices-from", "http://[::1"],
                ["--year", "2024", "--places", "nowhere.csv"],
            )
        ),
        ["energy", "fetch", "mars", "-o", "x.csv"],
        ["energy", "nothing"],
        ["nothing"],
        ["demo", "more"],
        ["bench", "--only", "nothing"],
        ["advise", "nowhere"],
        ["advise", "demo", "--without", "x"],
        ["advise", "."],
        ["bounds", "nowhere.csv"],
        ["demo", "--nothing"],
        ["energy", "panel", "--prices", "good.csv", "--weather", "nowhere.csv", "-o", "x.csv"],
        ["energy", "panel", "--prices", "good.csv", "--weather", "good.csv", "-o", "x.csv"],
        [*DECIDE, "--zone", "Nowhere"],
        [*DECIDE, "--past", "nowhere.csv"],
        [*DECIDE[:3], "--features", "good.dffl"],
        [*DECIDE[:3], "--features", "."],
        ["energy", "decide", "good.csv", "--features", "tomorrow.csv"],
    ]
    return [arguments for arguments in wrong if arguments != [*TRAIN, "--cost", "total+own"]]


def tables(good: pd.DataFrame) -> dict[str, bytes]:
    """Tables that no command can use, by what is wrong with them."""

    def edited(column: str, value: object, row: int = 5) -> bytes:
        frame = good.astype({column: object})
        frame.loc[row, column] = value
        return frame.to_csv(index=False).encode()

    text = good.to_csv(index=False)
    lines = text.splitlines()
    return {
        **{
            f"price {value!r}": edited("price_3", value)
            for value in ("x", "inf", "-inf", "1e999", "1,5", "None", "True", "\x1b[31m")
        },
        **{f"covariate {value!r}": edited("temp_c_mean", value) for value in ("x", "inf", "1e400")},
        **{
            f"date {value!r}": edited("date", value)
            for value in ("", "x", "2024-02-30", "31/12/2024", "20240101x", "0000-00-00", "1e9")
        },
        **{f"zone {value!r}": edited("zone", value) for value in ("", "\x1b[31mred", "a\nb", "\x00")},
        "nothing": b"",
        "header": lines[0].encode(),
        "one line end": b"\n",
        "spaces": b"   \n  \n",
        "binary": bytes(range(256)) * 40,
        "not UTF-8": text.encode().replace(b"zone", b"z\xffne"),
        "slashes": text.replace(",", "/").encode(),
        "tildes": text.replace(",", "~").encode(),
        "twice a column": text.replace("price_1,", "price_0,", 1).encode(),
        "no zone": good.drop(columns="zone").to_csv(index=False).encode(),
        "no date": good.drop(columns="date").to_csv(index=False).encode(),
        "no price_7": good.drop(columns="price_7").to_csv(index=False).encode(),
        "a row twice": "\n".join([*lines, lines[1]]).encode(),
        "a row too long": "\n".join([*lines, lines[1] + ",1,2"]).encode(),
        "one day": good[good["date"] == good["date"][0]].to_csv(index=False).encode(),
        "two days": good[good["date"].isin(sorted(set(good["date"]))[:2])].to_csv(index=False).encode(),
        "an open quote": (text + '"open,1').encode(),
        "JSON": b'{"zone": 1}',
        "HTML": b"<html><body>404</body></html>",
    }


def models(good: Path) -> dict[str, bytes]:
    """Files that are no model."""
    content = good.read_bytes()
    flipped = [bytearray(content) for _ in range(12)]
    for place, one in enumerate(flipped):
        one[(len(one) - 1) * place // 11] ^= 1 << place % 8
    manifest = json.dumps({"format": "dffl-fit", "version": 1}).encode()
    return {
        **{f"bit {place}": bytes(one) for place, one in enumerate(flipped)},
        "cut": content[:-7],
        "half": content[: len(content) // 2],
        "empty": b"",
        "text": b"model",
        "manifest": manifest,
        "longer": content + b"x",
        "pickle": b"\x80\x04N.",
    }


def refuse(arguments: list[str], folder: Path, before: set[Path]) -> None:
    answer = CliRunner().invoke(app, arguments)
    shown = (arguments, answer.exit_code, answer.output[-300:])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), (*shown, repr(answer.exception))
    assert answer.exit_code in CODES, shown
    assert "Traceback" not in answer.output, shown
    assert "\x1b" not in answer.stderr, shown
    if answer.exit_code != Exit.USAGE:
        assert len(answer.stderr.strip().splitlines()) == 1, shown
        assert answer.stderr.startswith("dffl: "), shown
    assert set(folder.rglob("*")) == before, shown


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sound table, a model and the features of a day."""
    folder = tmp_path_factory.mktemp("bad")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert CliRunner().invoke(app, ["energy", "example", "-o", "whole.csv"]).exit_code == 0
        whole = pd.read_csv("whole.csv")
        good = whole[whole["zone"].isin(sorted(set(whole["zone"]))[:3]) & (whole["date"] < "2024-03-10")].reset_index(drop=True)
        good.to_csv("good.csv", index=False)
        Path("whole.csv").unlink()
        assert CliRunner().invoke(app, [*TRAIN[:-1], "good.dffl", "--method", "steady", "--split", "2024-02-28"]).exit_code == 0
        tomorrow = good[good["date"] == "2024-03-09"].assign(date="2024-03-10")
        tomorrow.drop(columns=[f"price_{hour}" for hour in range(24)]).to_csv("tomorrow.csv", index=False)
        assert CliRunner().invoke(app, DECIDE).exit_code == 0
        assert CliRunner().invoke(app, SMALL).exit_code == 0
    return folder


@pytest.fixture
def inside(stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of that folder, to work in."""
    folder = tmp_path / "work"
    shutil.copytree(stock, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_wrong_options(inside: Path) -> None:
    before, wrong = set(inside.rglob("*")), options()
    assert len(wrong) > 130
    for arguments in wrong:
        refuse(arguments, inside, before)


def test_wrong_tables(inside: Path) -> None:
    good = pd.read_csv("good.csv")
    wrong = tables(good)
    assert len(wrong) > 40
    Path("bad.csv").touch()
    before = set(inside.rglob("*"))
    for content in wrong.values():
        Path("bad.csv").write_bytes(content)
        refuse(
            ["energy", "train", "bad.csv", "-q", "-o", "never.dffl", "--split", "2024-02-28", "--rounds", "1"], inside, before
        )


def test_wrong_parquet(inside: Path) -> None:
    good = pd.read_csv("good.csv")
    before = {*inside.rglob("*"), inside / "bad.parquet"}
    good.to_parquet("bad.parquet", index=False)
    content = Path("bad.parquet").read_bytes()
    for wrong in (content[:-9], content[9:], b"PAR1", b"", np.random.default_rng(0).bytes(500)):
        Path("bad.parquet").write_bytes(wrong)
        refuse(["energy", "train", "bad.parquet", "-q", "-o", "never.dffl"], inside, before)
    for column, values in (("price_3", good["price_3"].astype(str) + "x"), ("date", 7.5), ("price_0", [[1.0]] * len(good))):
        good.assign(**{column: values}).to_parquet("bad.parquet", index=False)
        refuse(["energy", "train", "bad.parquet", "-q", "-o", "never.dffl"], inside, before)


def test_wrong_models(inside: Path) -> None:
    before = {*inside.rglob("*"), inside / "bad.dffl"}
    for content in models(inside / "good.dffl").values():
        Path("bad.dffl").write_bytes(content)
        refuse(["energy", "decide", "bad.dffl", "--features", "tomorrow.csv"], inside, before)
    for manifest in ("[]", "{}", '{"format": "dffl-fit", "version": true}', "nothing", "[" * 5000):
        with zipfile.ZipFile("bad.dffl", "w") as archive:
            archive.writestr("manifest.json", manifest)
        refuse(["energy", "decide", "bad.dffl", "--features", "tomorrow.csv"], inside, before)


def test_wrong_folders_of_studies(inside: Path) -> None:
    folder = inside / "study"
    folder.mkdir()
    before = {*inside.rglob("*"), folder / "study.json", folder / "rows.parquet"}
    for text in ("", "[]", "{}", "null", "7", '{"name": 1}', "[" * 5000, '{"format": 99}'):
        (folder / "study.json").write_text(text)
        (folder / "rows.parquet").write_bytes(b"nothing")
        refuse(["paper", "--quick", "--show", "--out", "study"], inside, before)
        refuse(["advice-study", "--show", "--out", "study"], inside, before)
