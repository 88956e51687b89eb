"""Gates behind what mixes rows: of a gated delta net, which norms first, and of attention whose heads are gated."""

from __future__ import annotations

from torch import Tensor

from ....layer_config import DeltaConfig
from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, tl
from ..tiling.tiles import RowTiles
from .delta import Projected


def norm_and_gate(
    mixed: Tensor, weight: Tensor, eps: float, projected: Projected, out: Tensor, config: DeltaConfig,
    max_rows: int = MAX_ROWS,
) -> None:  # fmt: skip
    """``reference.gated_norm`` of rows ``mixed`` [n, value heads, value channels] into ``out`` [n, values]."""
    _norm_and_gate[(max_rows, config.num_value_heads)](
        mixed, weight, projected.rows, out, eps, projected.rows.stride(0),
        CHANNELS=config.channels, VALUES=config.values, VALUE_DIM=config.value_dim, **RowTiles(1).options,
    )  # fmt: skip


def gate_heads(mixed: Tensor, gates: Tensor, out: Tensor, head_dim: int, max_rows: int = MAX_ROWS) -> None:
    """``out`` [n, heads * head_dim] = ``mixed`` of that shape times the sigmoid of ``gates``, which may be strided."""
    columns = mixed.shape[1]
    _gate_heads[(max_rows, columns // head_dim)](
        mixed, gates, out, gates.stride(0), COLUMNS=columns, HEAD_DIM=head_dim, **RowTiles(1).options
    )


@early_kernel
def _norm_and_gate(
    mixed: tl.tensor, weight: tl.tensor, projected: tl.tensor, out: tl.tensor, eps: tl.tensor, row_stride: tl.tensor,
    CHANNELS: tl.constexpr, VALUES: tl.constexpr, VALUE_DIM: tl.constexpr,
) -> None:  # fmt: skip
    """The kernel of ``norm_and_gate``: a program for each (row, head)."""
    row = tl.program_id(0)
    value = tl.program_id(1) * VALUE_DIM + tl.arange(0, VALUE_DIM)
    scales = tl.load(weight + tl.arange(0, VALUE_DIM)).to(tl.float32)
    gate = tl.load(projected + row * row_stride + CHANNELS + value).to(tl.float32)  # older than the launch just before
    wait_for_inputs()
    let_next_start()
    x = tl.load(mixed + row * VALUES + value)
    x = x * tl.rsqrt(tl.sum(x * x, axis=0) / VALUE_DIM + eps) * scales
    tl.store(out + row * VALUES + value, (x * (gate / (1 + tl.exp(-gate)))).to(out.dtype.element_ty))


@early_kernel
def _gate_heads(
    mixed: tl.tensor, gates: tl.tensor, out: tl.tensor, row_stride: tl.tensor,
    COLUMNS: tl.constexpr, HEAD_DIM: tl.constexpr,
) -> None:  # fmt: skip
    """The kernel of ``gate_heads``: a program for each (row, head)."""
    row = tl.program_id(0)
    column = tl.program_id(1) * HEAD_DIM + tl.arange(0, HEAD_DIM)
    gate = tl.load(gates + row * row_stride + column).to(tl.float32)  # written before the launch just before
    wait_for_inputs()
    let_next_start()
    x = tl.load(mixed + row * COLUMNS + column).to(tl.float32)
    tl.store(out + row * COLUMNS + column, (x / (1 + tl.exp(-gate))).to(out.dtype.element_ty))
