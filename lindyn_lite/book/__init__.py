"""What only pages need: sliders (`explore`), the ledger (`check`, `ledger`), the figure style."""

from . import figures
from .checks import check
from .explorer import explore
from .ledger_table import ledger

__all__ = ["check", "explore", "figures", "ledger"]
