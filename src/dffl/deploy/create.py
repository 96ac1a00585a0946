"""What the coordinator does before a run: write a plan, make the authority, sign requests."""

from __future__ import annotations

from pathlib import Path

from dffl.deploy.credentials import Kit, make_authority, read_request, sign
from dffl.deploy.network import carrier_version
from dffl.deploy.plan import read_plan
from dffl.deploy.requesting import Said
from dffl.deploy.state import Folder
from dffl.files import write_text
from dffl.terminal import command_name

PLAN = """\
# The plan of a federation: what all sites and the coordinator agree on. Every site has a copy of it in its kit.
# Nothing in this file is secret. A change of it needs new kits: `dffl federation sign` again.

[federation]
name = "cold-stores"
address = "localhost:8443"      # host:port at which sites find the coordinator; only the coordinator needs an open port.
#listen = "0.0.0.0:8443"        # where the coordinator listens, if that is not the port of `address` on all interfaces.
sites = ["harbour", "bakery", "plant"]   # letters, digits, - and _.
features = ["temp_*", "wind"]   # as in a federation.toml: names of columns, or patterns with a star.
costs = "price_*"               # one column for each decision, matched by name at all sites.
inputs = 3                      # how many feature columns there are, after texts and dates have become numbers.
dimension = 12                  # how many costs there are. `dffl site check` counts both in a site's own table.
sense = "min"                   # or "max"; a site may have its own.
missing = "refuse"              # or "mean", "drop".
#order = "date"                 # the rows are a time series: the last 20 % of the days are the test.
#categories = { weather = ["dry", "wet"] }   # needed for text columns: sites cannot look into each other's tables.
min_rows = 20                   # a site with fewer training rows may not take part.
seed = 0                        # fixes everything that is random.

[training]
method = "crossfit"             # any method that can be deployed; its options and the settings of dffl.Settings.
rounds = 50
local_epochs = 5

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


def init(folder: Path) -> Said:
    """Write a commented plan into a folder."""
    path = folder / "plan.toml"
    if path.exists():
        raise ValueError(f"{path}: is there already, and is not overwritten; choose an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, PLAN)
    return Said([f"wrote {path}", "", "Next, edit it with the other sites, then type:", "",
                 f"  {command_name()} federation create {path}"], {"plan": str(path)})  # fmt: skip


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
    dffl, sites = command_name(), ", ".join(plan.sites)
    return Said(
        [f"{plan.name}: {len(plan.sites)} sites ({sites}), method {plan.asked.method.name}, {plan.settings.rounds} rounds",
         f"wrote {folder.secrets} (keep it secret: who has authority.key can sign sites)", "",
         "Next, every site types, on its own machine:", "", f"  {dffl} site request NAME", "",
         "and sends you NAME.request. For each of them type:", "", f"  {dffl} federation sign {path.parent} NAME.request", "",
         f"and send the kit back. Then serve:  {dffl} federation serve {path.parent}"],
        {"name": plan.name, "sites": list(plan.sites), "digest": plan.digest, "secrets": str(folder.secrets)},
    )  # fmt: skip


def sign_request(path: Path, request: Path, replace: bool) -> Said:
    """Sign a site's request; its kit holds the certificate and the plan."""
    folder, plan = Folder(path), read_plan(path / "plan.toml")
    if not folder.secrets.is_dir():
        raise ValueError(f"{path}: has no certificates yet; type dffl federation create {path / 'plan.toml'}")
    name, asked, print_ = read_request(request)
    if name not in plan.sites:
        raise ValueError(f"{request}: {name!r} is not among the sites of the plan ({', '.join(plan.sites)})")
    kit_path = folder.kits / f"{name}.kit"
    if kit_path.exists() and not replace:
        before = Kit.read(kit_path)
        from cryptography import x509

        same = x509.load_pem_x509_certificate(before.certificate.encode()).public_key() == asked.public_key()
        if not same:
            fix = "ask that site whether it lost its key; --replace signs the new one"
            raise ValueError(f"{request}: a kit for {name!r} with another key is there already; {fix}")
    authority = (folder.secrets / "authority.crt").read_text()
    Kit(name, sign(folder.secrets, asked, name).decode(), authority, plan.text).write(kit_path)
    return Said(
        [f"{name}: fingerprint {print_}",
         "Compare it with what the site was shown, by telephone for example, before you send the kit.",
         f"wrote {kit_path} (nothing in it is secret)"],
        {"site": name, "fingerprint": print_, "kit": str(kit_path)},
    )  # fmt: skip
