"""The paper's synthetic study, with its tables and figures beside the paper's own numbers."""
