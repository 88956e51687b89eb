"""The screen's name for :mod:`dflash_tui.core.wrapping`, which exports use too."""

from dflash_tui.core.marks import Mark as Mark
from dflash_tui.core.wrapping import TAB as TAB
from dflash_tui.core.wrapping import Document as Document
from dflash_tui.core.wrapping import Row as Row
from dflash_tui.core.wrapping import sanitise as sanitise
from dflash_tui.core.wrapping import width_of as width_of
from dflash_tui.core.wrapping import wrap as wrap
