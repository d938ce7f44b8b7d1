from headway_native._native import Cancel as Cancel
from headway_native._native import CancelledError as CancelledError
from headway_native._native import Model as Model
from headway_native._native import Probe as Probe
from headway_native._native import Session as Session
from headway_native._native import Shortlist as Shortlist
from headway_native._native import available as available
