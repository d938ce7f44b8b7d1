"""The compiled engine; ``headway.engine`` is its wrapper and says what may be given."""

from headway_native._native import Cancel, CancelledError, Model, Probe, Session, Shortlist, available

__all__ = ["Cancel", "CancelledError", "Model", "Probe", "Session", "Shortlist", "available"]
