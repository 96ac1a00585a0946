"""The paper's synthetic study, with its tables and figures and the paper's own numbers."""
