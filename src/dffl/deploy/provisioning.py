"""The coordinator's steps before a run: write a plan, create the authority, sign certificate requests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dffl.deploy.certificate_request import CommandResult
from dffl.deploy.credentials import Kit, make_authority, make_server, read_request, require_site_name, sign
from dffl.deploy.example_sites import TRAINING as EXAMPLE_TRAINING
from dffl.deploy.example_sites import site_files, write_sites
from dffl.deploy.federation_plan import is_address, read_plan
from dffl.deploy.network import nvflare_version
from dffl.deploy.run_state import CoordinatorFolder
from dffl.deploy.trusted_keys import KeyRegistry, SiteKeys
from dffl.files import require_makeable, require_target, write_text
from dffl.terminal import command_name

PLAN = """\
# The plan of a federation: the coordinator and all sites agree on it. Every site has a copy of it in its kit.
# Nothing in this file is secret. After a change, `dffl federation sign DIR` writes all kits again; send them to the sites.

[federation]
name = "cold-stores"
address = "{address}"      # host:port at which sites reach the coordinator; only the coordinator needs an open port.
#listen = "0.0.0.0:8443"        # where the coordinator listens, if that is not the port of `address` on all interfaces.
sites = ["harbour", "bakery", "plant"]   # letters, digits, - and _.
features = ["weather", "temp_*", "wind", "load"]   # as in a federation.toml: column names, or patterns with a star.
costs = "price_*"               # one column for each decision, matched by name at all sites.
inputs = 7                      # number of features, after texts and dates are encoded as numbers.
dimension = 12                  # number of costs. `dffl site check` counts both in a site's table.
categories = { weather = ["clear", "cloudy", "rain"] }   # of text columns: sites cannot see each other's tables.
sense = "min"                   # or "max"; a site may have its own.
missing = "drop"                # rows with empty cells are dropped. Or: "refuse", "mean".
order = "date"                  # the rows are a time series. If not, remove this line and write split = "row" below.
split = "time"                  # which rows are held out: the same days at all sites. "row": by content, equal rows together.
train_from = 2023-03-01         # with "time": the first day of training. Periods up to test_from take turns as validation.
test_from = 2023-08-08          # with "time": all rows from this day on are test rows.
unit = "EUR"                    # the unit of what decisions cost, for reports.
min_rows = 20                   # a site with fewer training rows may not take part.
#max_rows = 100000              # a site with more may not either: its rows are its weight. Default: 100 x the others' median.
#columns = "..."                # the digest that `dffl site check` shows. Without it, the first site to join decides.
seed = 0                        # seed of all random numbers.

[training]
{training}
[rounds]
quorum = 0.5                    # a round needs answers of at least this share of the selected sites.
join_seconds = 600              # time-out of the wait for all sites before the first round.
round_seconds = 600             # time-out of a site's answer; a slower site is late.
dead_seconds = 8                # a site that is silent for this long is dead, until it joins again.
quorum_seconds = 600            # how long a round waits for a quorum; then the run ends, and its state is kept.

[wire]
scalars = ["loss"]              # what a site reports about a round: loss, clipped, norm, or [].
results = []                    # what it reports about its final model: ["out_of_fold_regret"], or [].
statistics = "own"              # "pooled": sites send the mean and scale of each feature and the scale of their costs.
most_megabytes = 64             # size limit of a message.
"""
TRAINING = """\
method = "crossfit"             # any method that can be deployed, or "chosen"; its options and settings of dffl.Settings.
rounds = 50
local_epochs = 5
"""
COMPARE = "Before you send a kit, compare its fingerprint with the one that the site sees, for example by telephone."
DEFAULT_ADDRESS = "localhost:8443"


def init(folder: Path, address: str = DEFAULT_ADDRESS, example: bool = False) -> CommandResult:
    """Write a commented plan into a folder; for an example, into its subfolder, next to the folders of three sites."""
    if not is_address(address):
        raise ValueError(f"--address must be host:port, where sites reach the coordinator, found {address!r}")
    path = folder / "coordinator" / "plan.toml" if example else folder / "plan.toml"
    for target in (path, *(site_files(folder) if example else ())):
        if os.path.lexists(target):
            raise ValueError(f"{target}: already exists and is not overwritten; choose an empty folder")
    for home in {path.parent, *(file.parent for file in site_files(folder) if example)}:
        require_makeable(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = PLAN.replace("{address}", address).replace("{training}", EXAMPLE_TRAINING if example else TRAINING)
    write_text(path, text)
    written = [path, *(write_sites(folder) if example else ())]
    first = "Next, type:" if example else "Next, edit it with the other sites, then type:"
    return CommandResult(
        [*(f"wrote {file}" for file in written), "", first, "", f"  {command_name()} federation create {path}"],
        {"plan": str(path), "files": [str(file) for file in written]},
    )


def create(path: Path) -> CommandResult:
    """Check a plan, and create the authority and the server's certificate."""
    nvflare_version()
    plan, folder = read_plan(path), CoordinatorFolder(path.parent)
    if path.name != "plan.toml":
        raise ValueError(f"{path}: must be named plan.toml; its folder becomes the coordinator's folder")
    if folder.secrets.exists():
        raise ValueError(f"{folder.secrets}: already exists; remove it to start again, which makes all kits invalid")
    make_authority(folder.secrets, plan.name, plan.hosts)
    folder.kits.mkdir(exist_ok=True)
    with KeyRegistry(folder.keys).changed() as keys:
        keys.trusted.clear()  # keys signed by an earlier authority
    dffl, sites, method = command_name(), ", ".join(plan.sites), plan.method
    is_local = plan.address.rpartition(":")[0] in ("localhost", "127.0.0.1")
    fix = f"for sites on other machines, change `address` and type {dffl} federation renew {path.parent} before you sign"
    only_here = f"{plan.address} can be reached from this machine only; {fix}"
    return CommandResult(
        [f"{plan.name}: {len(plan.sites)} sites ({sites}), method {method}, {plan.settings.rounds} rounds",
         f"plan {plan.digest[:16]} (the same at the coordinator and at all sites)",
         f"wrote {folder.secrets} (keep it secret: authority.key can sign certificates of sites)",
         *([only_here] if is_local else []), "",
         "Next, every site types on its own machine:", "", f"  {dffl} site request NAME", "",
         "and sends you NAME.request. Then type:", "", f"  {dffl} federation sign {path.parent} NAME.request ...", "",
         f"and send the kits back. Then serve:  {dffl} federation serve {path.parent}"],
        {"name": plan.name, "sites": list(plan.sites), "digest": plan.digest, "secrets": str(folder.secrets)},
    )  # fmt: skip


def renew(path: Path) -> CommandResult:
    """Create a new key and certificate of the server: for two more years, or for a new address in the plan."""
    folder, plan = CoordinatorFolder(path), read_plan(path / "plan.toml")
    _require_secrets(folder)
    make_server(folder.secrets, plan.hosts)
    hosts = ", ".join(plan.hosts)
    lines = [f"wrote {folder.secrets / 'server.crt'}, for {hosts}; kits stay valid. Restart the coordinator to use it."]
    return CommandResult(lines, {"certificate": str(folder.secrets / "server.crt"), "hosts": plan.hosts})


def revoke(path: Path, name: str) -> CommandResult:
    """Revoke a site's key, and remove its kit."""
    folder = CoordinatorFolder(path)
    _require_secrets(folder)
    require_site_name(name, "NAME")
    with KeyRegistry(folder.keys).changed() as keys:
        if name not in keys.trusted:
            raise ValueError(f"{folder.keys}: no key of {name!r} is trusted (trusted: {', '.join(keys.trusted) or 'none'})")
        key = keys.revoke(name)
    (folder.kits / f"{name}.kit").unlink(missing_ok=True)
    return CommandResult(
        [f"{name}: the key with fingerprint {key} is revoked, effective immediately, also at a running coordinator", "",
         f"For a new kit, {name} types on its own machine (its state is kept):", "",
         f"  {command_name()} site request {name} --new-key"],
        {"site": name, "fingerprint": key},
    )  # fmt: skip


def _require_secrets(folder: CoordinatorFolder) -> None:
    if not folder.secrets.is_dir():
        raise ValueError(f"{folder.path}: has no certificates; type dffl federation create {folder.path / 'plan.toml'}")


def rewrite_kits(path: Path) -> CommandResult:
    """Write the kits of all sites again with the current plan, and remove the kits of sites that left the plan."""
    folder, plan = CoordinatorFolder(path), read_plan(path / "plan.toml")
    paths = {kit_path.stem: kit_path for kit_path in sorted(folder.kits.glob("*.kit"))}
    if not paths:
        raise ValueError(f"{path}: has no kits; name the requests of sites to sign them")
    _require_secrets(folder)
    gone = [name for name in paths if name not in plan.sites]
    with KeyRegistry(folder.keys).changed() as keys:
        kits = {name: _trusted_kit(kit_path, folder, keys) for name, kit_path in paths.items() if name not in gone}
        keys.trusted = {name: key for name, key in keys.trusted.items() if name in plan.sites}
    for name in gone:
        paths[name].unlink()
    lines = [f"removed {paths[name]}: {name} is no longer a site of the plan" for name in gone]
    for name, kit in kits.items():
        replace(kit, plan=plan.text).write(paths[name])
        ended = (
            f", but its certificate is only valid {kit.invalid_period}: sign the request of {name} again"
            if kit.invalid_period
            else ""
        )
        lines.append(f"wrote {paths[name]}{ended}")
    missing = [name for name in plan.sites if name not in paths]
    lines += [f"no kit yet: {', '.join(missing)}"] if missing else []
    return CommandResult([*lines, f"Send the kits to their sites. They contain plan {plan.digest[:16]}."],
                {"kits": [str(paths[name]) for name in kits], "missing": missing,
                 "ended": [name for name, kit in kits.items() if kit.invalid_period]})  # fmt: skip


def _trusted_kit(path: Path, folder: CoordinatorFolder, keys: SiteKeys) -> Kit:
    """A kit of this authority with the trusted key of its site."""
    fix = f"remove it, and sign the request of {path.stem!r} again"
    try:
        kit = Kit.parse(path)
    except ValueError as error:
        raise ValueError(f"{error}; {fix}") from None
    if kit.authority != (folder.secrets / "authority.crt").read_text():
        raise ValueError(f"{path}: is signed by another authority; {fix}")
    if kit.name != path.stem or keys.trusted.get(kit.name) != kit.fingerprint:
        raise ValueError(f"{path}: its key is not the trusted key of {path.stem!r}; {fix}")
    return kit


def sign_requests(path: Path, requests: Sequence[Path], replace: bool) -> CommandResult:
    """Sign the requests of several sites."""
    results = [sign_request(path, request, replace) for request in requests]
    lines = [line for result in results for line in result.lines if line != COMPARE]
    return CommandResult([*lines, COMPARE], {"signed": [result.values for result in results]})


def sign_request(path: Path, request: Path, replace: bool) -> CommandResult:
    """Sign a site's request, and write its kit with the certificate and the plan."""
    folder, plan = CoordinatorFolder(path), read_plan(path / "plan.toml")
    _require_secrets(folder)
    name, signing_request, fingerprint = read_request(request)
    if name not in plan.sites:
        raise ValueError(f"{request}: {name!r} is not among the sites of the plan ({', '.join(plan.sites)})")
    require_target(folder.kits / f"{name}.kit", "the kit", [request])
    with KeyRegistry(folder.keys).changed() as keys:
        if fingerprint in keys.revoked:
            raise ValueError(f"{request}: its key was revoked; {name!r} creates another with `dffl site request --new-key`")
        if keys.trusted.get(name, fingerprint) != fingerprint:
            if not replace:
                fix = "ask that site whether it lost its key; --replace signs the new one and revokes the old one"
                raise ValueError(f"{request}: another key of {name!r} is trusted; {fix}")
            keys.revoke(name)
        keys.trusted[name] = fingerprint
    kit_path, authority = folder.kits / f"{name}.kit", (folder.secrets / "authority.crt").read_text()
    Kit(name, sign(folder.secrets, signing_request, name).decode(), authority, plan.text).write(kit_path)
    return CommandResult(
        [f"{name}: fingerprint {fingerprint}",
         f"wrote {kit_path} (nothing in it is secret)", COMPARE],
        {"site": name, "fingerprint": fingerprint, "kit": str(kit_path)},
    )  # fmt: skip
