"""What the coordinator does before a run: write a plan, make the authority, sign requests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dffl.deploy.credentials import Kit, make_authority, make_server, read_request, require_site_name, sign
from dffl.deploy.example import TRAINING as EXAMPLE_TRAINING
from dffl.deploy.example import site_files, write_sites
from dffl.deploy.keys import Book, Keys
from dffl.deploy.network import carrier_version
from dffl.deploy.plan import is_address, read_plan
from dffl.deploy.requesting import Said
from dffl.deploy.state import Folder
from dffl.files import require_makeable, require_target, write_text
from dffl.terminal import command_name

PLAN = """\
# The plan of a federation: what all sites and the coordinator agree on. Every site has a copy of it in its kit.
# Nothing in this file is secret. After a change of it, `dffl federation sign DIR` writes all kits again, to be sent out.

[federation]
name = "cold-stores"
address = "{address}"      # host:port at which sites find the coordinator; only the coordinator needs an open port.
#listen = "0.0.0.0:8443"        # where the coordinator listens, if that is not the port of `address` on all interfaces.
sites = ["harbour", "bakery", "plant"]   # letters, digits, - and _.
features = ["weather", "temp_*", "wind", "load"]   # as in a federation.toml: names of columns, or patterns with a star.
costs = "price_*"               # one column for each decision, matched by name at all sites.
inputs = 7                      # how many features there are, after texts and dates have become numbers.
dimension = 12                  # how many costs there are. `dffl site check` counts both in a site's own table.
categories = { weather = ["clear", "cloudy", "rain"] }   # of text columns: sites cannot look into each other's tables.
sense = "min"                   # or "max"; a site may have its own.
missing = "drop"                # rows with empty cells are left out. Or: "refuse", "mean".
order = "date"                  # the rows are a time series. Else leave it out, and write split = "row" below.
split = "time"                  # which rows are held out: the same days at all sites. "row": equal rows, by what they hold.
train_from = 2023-03-01         # with "time": the first day of training. Stretches up to test_from take turns in judging.
test_from = 2023-08-08          # with "time": from this day on, all rows are the test.
unit = "EUR/MWh"                # the unit of the costs, for reports.
min_rows = 20                   # a site with fewer training rows may not take part.
#max_rows = 100000              # nor one with more: a site weighs as much as it has rows. Default: 100 x the others' median.
#columns = "..."                # what `dffl site check` shows at a site that is right. Else the first site to join decides.
seed = 0                        # fixes everything that is random.

[training]
{training}
[rounds]
quorum = 0.5                    # a round counts if at least this share of the selected sites has answered.
join_seconds = 600              # how long the first round waits for all sites.
round_seconds = 600             # a site that needs longer for its answer is late.
dead_seconds = 8                # a site without a sign of life for so long is dead, until it joins again.
quorum_seconds = 600            # how long a round waits for a quorum, before the run ends with its state kept.

[wire]
scalars = ["loss"]              # what a site says of its training in a round: loss, clipped, norm, or [].
results = []                    # what it says of its own model in the end: ["out_of_fold_regret"], or [].
statistics = "own"              # "pooled": sites send the mean and scale of each feature and the scale of their costs.
most_megabytes = 64             # no message may be larger.
"""
TRAINING = """\
method = "crossfit"             # any method that can be deployed; its options and the settings of dffl.Settings.
rounds = 50
local_epochs = 5
"""
COMPARE = "Compare each fingerprint with what the site was shown, by telephone for example, before you send its kit."
USUAL_ADDRESS = "localhost:8443"


def init(folder: Path, address: str = USUAL_ADDRESS, example: bool = False) -> Said:
    """Write a commented plan into a folder; for an example, into one of its folders, with three sites beside it."""
    if not is_address(address):
        raise ValueError(f"--address must be host:port, where sites find the coordinator, found {address!r}")
    path = folder / "coordinator" / "plan.toml" if example else folder / "plan.toml"
    for wanted in (path, *(site_files(folder) if example else ())):
        if os.path.lexists(wanted):
            raise ValueError(f"{wanted}: is there already, and is not overwritten; choose an empty folder")
    for home in {path.parent, *(one.parent for one in site_files(folder) if example)}:
        require_makeable(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = PLAN.replace("{address}", address).replace("{training}", EXAMPLE_TRAINING if example else TRAINING)
    write_text(path, text)
    written = [path, *(write_sites(folder) if example else ())]
    first = "Next, type:" if example else "Next, edit it with the other sites, then type:"
    return Said(
        [*(f"wrote {one}" for one in written), "", first, "", f"  {command_name()} federation create {path}"],
        {"plan": str(path), "files": [str(one) for one in written]},
    )


def create(path: Path) -> Said:
    """Check a plan, and make the authority and the server's certificate."""
    carrier_version()
    plan, folder = read_plan(path), Folder(path.parent)
    if path.name != "plan.toml":
        raise ValueError(f"{path}: must be called plan.toml; its folder becomes the coordinator's")
    if folder.secrets.exists():
        raise ValueError(f"{folder.secrets}: is there already; remove it to begin again, which makes all kits void")
    make_authority(folder.secrets, plan.name, plan.hosts)
    folder.kits.mkdir(exist_ok=True)
    with Keys(folder.keys).changed() as book:
        book.believed.clear()  # of an authority before this one
    dffl, sites = command_name(), ", ".join(plan.sites)
    here = plan.address.rpartition(":")[0] in ("localhost", "127.0.0.1")
    fix = f"for sites elsewhere, change `address` and type {dffl} federation renew {path.parent} before you sign"
    only_here = f"{plan.address} can be reached from this machine only; {fix}"
    return Said(
        [f"{plan.name}: {len(plan.sites)} sites ({sites}), method {plan.asked.method.name}, {plan.settings.rounds} rounds",
         f"plan {plan.digest[:16]} (all sides must see the same)",
         f"wrote {folder.secrets} (keep it secret: who has authority.key can sign sites)", *([only_here] if here else []), "",
         "Next, every site types, on its own machine:", "", f"  {dffl} site request NAME", "",
         "and sends you NAME.request. Then type:", "", f"  {dffl} federation sign {path.parent} NAME.request ...", "",
         f"and send the kits back. Then serve:  {dffl} federation serve {path.parent}"],
        {"name": plan.name, "sites": list(plan.sites), "digest": plan.digest, "secrets": str(folder.secrets)},
    )  # fmt: skip


def renew(path: Path) -> Said:
    """Make a new key and certificate of the server: for another two years, or for the address that the plan has now."""
    folder, plan = Folder(path), read_plan(path / "plan.toml")
    _require_secrets(folder)
    make_server(folder.secrets, plan.hosts)
    hosts = ", ".join(plan.hosts)
    lines = [f"wrote {folder.secrets / 'server.crt'}, for {hosts}; kits stay as they are. Start serving again to use it."]
    return Said(lines, {"certificate": str(folder.secrets / "server.crt"), "hosts": plan.hosts})


def revoke(path: Path, name: str) -> Said:
    """Believe a site's key no longer, and remove its kit."""
    folder = Folder(path)
    _require_secrets(folder)
    require_site_name(name, "NAME")
    with Keys(folder.keys).changed() as book:
        if name not in book.believed:
            raise ValueError(f"{folder.keys}: no key of {name!r} is believed (but of: {', '.join(book.believed) or 'nobody'})")
        key = book.revoke(name)
    (folder.kits / f"{name}.kit").unlink(missing_ok=True)
    return Said(
        [f"{name}: the key with fingerprint {key} is revoked: it is refused from now on, also by a coordinator that serves", "",
         f"For a new kit, {name} types, on its own machine, where its state stays:", "",
         f"  {command_name()} site request {name} --new-key"],
        {"site": name, "fingerprint": key},
    )  # fmt: skip


def _require_secrets(folder: Folder) -> None:
    if not folder.secrets.is_dir():
        raise ValueError(f"{folder.path}: has no certificates yet; type dffl federation create {folder.path / 'plan.toml'}")


def kits_again(path: Path) -> Said:
    """Write the kits of all sites again, with the plan as it is now; those of sites that it no longer has are removed."""
    folder, plan = Folder(path), read_plan(path / "plan.toml")
    paths = {one.stem: one for one in sorted(folder.kits.glob("*.kit"))}
    if not paths:
        raise ValueError(f"{path}: has no kits yet; name the requests of sites to sign them")
    _require_secrets(folder)
    gone = [name for name in paths if name not in plan.sites]
    with Keys(folder.keys).changed() as book:
        kits = {name: _believed_kit(one, folder, book) for name, one in paths.items() if name not in gone}
        book.believed = {name: key for name, key in book.believed.items() if name in plan.sites}
    for name in gone:
        paths[name].unlink()
    lines = [f"removed {paths[name]}: {name} is no longer among the sites of the plan" for name in gone]
    for name, kit in kits.items():
        replace(kit, plan=plan.text).write(paths[name])
        ended = f", but its certificate holds {kit.not_now}: sign the request of {name} again" if kit.not_now else ""
        lines.append(f"wrote {paths[name]}{ended}")
    missing = [name for name in plan.sites if name not in paths]
    lines += [f"no kit yet: {', '.join(missing)}"] if missing else []
    return Said([*lines, f"Send the kits to their sites. The plan in them is {plan.digest[:16]}."],
                {"kits": [str(paths[name]) for name in kits], "missing": missing,
                 "ended": [name for name, kit in kits.items() if kit.not_now]})  # fmt: skip


def _believed_kit(path: Path, folder: Folder, book: Book) -> Kit:
    """A kit of this authority with the key that is believed of its site."""
    fix = f"remove it, and sign the request of {path.stem!r} again"
    try:
        kit = Kit.parsed(path)
    except ValueError as error:
        raise ValueError(f"{error}; {fix}") from None
    if kit.authority != (folder.secrets / "authority.crt").read_text():
        raise ValueError(f"{path}: is a kit of another authority; {fix}")
    if kit.name != path.stem or book.believed.get(kit.name) != kit.fingerprint:
        raise ValueError(f"{path}: the key in it is not the one that is believed of {path.stem!r}; {fix}")
    return kit


def sign_requests(path: Path, requests: Sequence[Path], replace: bool) -> Said:
    """Sign the requests of several sites."""
    made = [sign_request(path, request, replace) for request in requests]
    lines = [line for one in made for line in one.lines if line != COMPARE]
    return Said([*lines, COMPARE], {"signed": [one.values for one in made]})


def sign_request(path: Path, request: Path, replace: bool) -> Said:
    """Sign a site's request; its kit holds the certificate and the plan."""
    folder, plan = Folder(path), read_plan(path / "plan.toml")
    _require_secrets(folder)
    name, asked, print_ = read_request(request)
    if name not in plan.sites:
        raise ValueError(f"{request}: {name!r} is not among the sites of the plan ({', '.join(plan.sites)})")
    require_target(folder.kits / f"{name}.kit", "the kit", [request])
    with Keys(folder.keys).changed() as book:
        if print_ in book.revoked:
            raise ValueError(f"{request}: its key was revoked; {name!r} makes another with `dffl site request --new-key`")
        if book.believed.get(name, print_) != print_:
            if not replace:
                fix = "ask that site whether it lost its key; --replace signs the new one and revokes the old one"
                raise ValueError(f"{request}: another key of {name!r} is believed; {fix}")
            book.revoke(name)
        book.believed[name] = print_
    kit_path, authority = folder.kits / f"{name}.kit", (folder.secrets / "authority.crt").read_text()
    Kit(name, sign(folder.secrets, asked, name).decode(), authority, plan.text).write(kit_path)
    return Said(
        [f"{name}: fingerprint {print_}",
         f"wrote {kit_path} (nothing in it is secret)", COMPARE],
        {"site": name, "fingerprint": print_, "kit": str(kit_path)},
    )  # fmt: skip
