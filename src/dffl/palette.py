"""One colour for a method, the same in every figure (Okabe and Ito's palette, safe for the colour-blind)."""

from __future__ import annotations

COLOURS = {
    "mean-cost": "#999999",
    "local": "#0072B2",
    "fedavg": "#D55E00",
    "interp-mse": "#CC79A7",
    "interp-spo": "#009E73",
    "oracle-interp-mse": "#E6BCD3",
    "oracle-interp-spo": "#80CEB9",
    "finetune": "#E69F00",
    "finetune-mix": "#56B4E9",
}
"""An oracle's colour is the pale one of the method that it idealises."""
