"""What only pages need: sliders (`explore`), the ledger (`check`, `ledger`), the figure style."""

from . import figures
from .check import check
from .explore import explore
from .ledger import ledger

__all__ = ["check", "explore", "figures", "ledger"]
