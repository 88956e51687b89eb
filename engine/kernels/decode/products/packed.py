"""Products of at most 16 rows with packed weights. Weights and rows go from memory straight into the
registers where tensor cores want them, some steps ahead, so no warp ever waits for another before the end. The order of
sums allows that: the four threads that multiply sixteen numbers of a column at a time each read neighbours of their
own, as wide as a load can be. Unpacking takes more instructions than multiplying, so nothing is unpacked twice: warps
share the depth of a step, not its columns. The part of each warp is one product of a batch, and the parts' sums are
added up at the end.

The weight is the first factor: what is unpacked can be put into any registers, and of the second, the rows, two
neighbouring registers are wanted at a time, which is how they are loaded. It is also the factor that may be as narrow
as eight rows (``height_of``), for half the products."""

from __future__ import annotations

from ...toolchain.early_launch import let_next_start
from ...toolchain.jit import MAX_ROWS, SIMULATED, constexpr_function, dot, jit, tl
from ...weights import fp8
from ...weights.fp8 import fp8_words
from ...weights.matrix import FP8, Matrix, eight_numbers, group_of, restored
from ...weights.weight import Weight
from .thread_loads import joined, neighbours, two_scales
from .tile_shape import TileShape, ahead_of, depend_on, goes_past, length_of, parts_of, start_of_step


@constexpr_function
def words_of_block(weight_format: int) -> int:
    """How many words of 32 bits a block of 32 numbers of a row has."""
    return 8 if weight_format == fp8.FP8 else 4


@constexpr_function
def words_of_lane(wide: int, weight_format: int) -> int:
    """How many words each of four threads reads, of a warp's ``wide`` numbers of a column."""
    words: int = wide // 32 * words_of_block(weight_format) // 4
    return words


def is_packed(weight: Weight) -> bool:
    return weight.format >= fp8.FP8


def height_of(weight: Weight, max_rows: int) -> int:
    """Rows of a tile, those that don't count among them. A row's sums are the same at either height."""
    return 8 if is_packed(weight) and max_rows <= 8 else MAX_ROWS


@constexpr_function
def pieces_of(words: int, weight_format: int) -> int:
    """In how many pieces the numbers of a row are read that are multiplied by so many words."""
    return 2 if weight_format == fp8.FP8 else (words + 1) // 2


@jit
def spread(values: tl.tensor) -> tl.tensor:
    """[rows / 8, 1, 8, 1] of one value for each of 8 or 16 rows."""
    return tl.reshape(values, [values.shape[0] // 8, 8])[:, None, :, None]


@jit
def first_words(
    first: tl.tensor, column: tl.tensor, start: tl.tensor, there: tl.tensor, weight: Matrix, cut: TileShape
) -> tuple[tl.tensor, ...]:
    """Loads, without waiting, the words with which ``multiply_packed`` begins, if such a product is ``there``. None of
    them depends on rows, so it may stand before ``wait_for_inputs``."""
    words = (_words_of_step(first, column, start, 0, there, weight, cut),)
    for step in tl.static_range(1, ahead_of(cut.DEPTH, cut.BLOCK_K, cut.AHEAD)):
        words = words + (_words_of_step(first, column, start, step, there, weight, cut),)  # type: ignore[assignment]  # noqa: RUF005
    return words


@jit
def multiply_packed(
    rows: tl.tensor,
    first: tl.tensor,
    column: tl.tensor,
    start: tl.tensor,
    words: tl.tensor,
    x: tl.tensor,
    last: tl.tensor,
    weight: Matrix,
    cut: TileShape,
) -> tl.tensor:
    """Sums of each part, fp32 [parts, BLOCK_N, rows], for ``added_up``: rows times the weight's rows from ``first`` +
    ``column`` on, over depth start .. start + DEPTH - 1, beginning with ``first_words`` and the first step's rows x.
    Rows come from L2, sooner than weights from memory, and take more registers: one step of them is on its way. Lets
    the next kernel start, if ``last``, when it has asked for its last tiles.

    No loop: what a step asks for is on its way while the next one is multiplied only if the assembler can tell their
    loads apart, and where a loop or a branch begins it forgets which is which (MEASUREMENTS.md, "One scoreboard")."""
    steps: tl.constexpr = length_of(cut.DEPTH, cut.BLOCK_K) // cut.BLOCK_K
    ahead: tl.constexpr = ahead_of(cut.DEPTH, cut.BLOCK_K, cut.AHEAD)
    total = tl.zeros([parts_of(cut.PARTS, cut.BLOCK_K), cut.BLOCK_N, 8 * rows.shape[0]], dtype=tl.float32)
    for step in tl.static_range(steps):
        if step == steps - ahead and last:
            let_next_start()
        total = _multiplied(total, words[step % ahead], x, weight, rows)
        if step < steps - ahead:
            words = _with(words, step % ahead, _words_of_step(first, column, start, step + ahead, True, weight, cut))
        if step < steps - 1:
            x = load_rows(rows, first, column, start, step + 1, weight, cut)
    return total


@jit
def _with(tiles: tl.tensor, index: tl.constexpr, tile: tl.tensor) -> tuple[tl.tensor, ...]:
    """``tiles`` with the one at ``index`` replaced."""
    return tiles[:index] + (tile,) + tiles[index + 1 :]  # type: ignore[no-any-return]  # noqa: RUF005


@jit
def scales_of_rows(first: tl.tensor, column: tl.tensor, weight: Matrix, cut: TileShape) -> tl.tensor:
    """The scales [1, BLOCK_N] of a weight that has one for each row, to be loaded before the loop; otherwise 0."""
    if weight.FORMAT == FP8:
        lane = tl.arange(0, cut.BLOCK_N)
        panel = column // 16 + _panel_of(lane // 16, column, weight, cut)
        return tl.load(weight.scales + first + panel * 16 + lane % 16)[None, :]
    else:
        return 0


@jit
def added_up(total: tl.tensor, scales: tl.tensor, weight: Matrix, cut: TileShape) -> tl.tensor:
    """fp32 [rows, BLOCK_N]: the products, from the sums of ``multiply_packed`` and ``scales_of_rows``."""
    total = _parts_added(total, parts_of(cut.PARTS, cut.BLOCK_K))
    if weight.FORMAT == FP8:
        return total * scales
    else:
        return restored(total, weight.FORMAT)


@jit
def first_of(expert: tl.tensor, weight: Matrix) -> tl.tensor:
    """The row at which an expert's weight begins in the stacked matrix; 0 for -1, which is no expert."""
    return tl.maximum(expert, 0).to(tl.int64) * weight.N


@jit
def rows_of_pass(x: tl.tensor, max_rows: tl.tensor, weight: Matrix, HEIGHT: tl.constexpr) -> tl.tensor:
    """Pointers to HEIGHT rows of x, ``spread``; from row ``max_rows`` on they all point to the first."""
    row = tl.arange(0, HEIGHT)
    return spread(x + tl.where(row < max_rows, row, 0) * weight.K)


@jit
def rows_of_pairs(x: tl.tensor, pair: tl.tensor, weight: Matrix, TOP_K: tl.constexpr) -> tl.tensor:
    """Pointers to the rows of x that these pairs read, ``spread``: TOP_K pairs in turn read one row. Places without a
    pair (``load_item`` gives the first one's complement) point to the first pair's row: no other memory is read."""
    return spread(x + (pair ^ (pair >> 31)) // TOP_K * weight.K)


@jit
def multiply_one_of_many(
    x: tl.tensor,
    begun: tl.tensor,
    expert: tl.tensor,
    column: tl.tensor,
    next_pair: tl.tensor,
    next_expert: tl.tensor,
    next_column: tl.tensor,
    weight: Matrix,
    cut: TileShape,
    TOP_K: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """One of a program's products, with an expert's weight, over the whole depth, ``begun`` with ``rows_of_pairs``,
    ``first_words`` and ``load_rows``, and with what the next begins, which is on its way while sums are added up. There
    is none if the next expert is -1."""
    rows, words, loaded = begun
    first = first_of(expert, weight)
    scales = scales_of_rows(first, column, weight, cut)
    if cut.DEPTH <= cut.BLOCK_K:
        depend_on(expert)
    total = multiply_packed(rows, first, column, 0, words, loaded, next_expert < 0, weight, cut)
    first = first_of(next_expert, weight)
    rows = rows_of_pairs(x, next_pair, weight, TOP_K)
    words = first_words(first, next_column, 0, next_expert >= 0, weight, cut)
    loaded = load_rows(rows, first, next_column, 0, 0, weight, cut)
    return added_up(total, scales, weight, cut), (rows, words, loaded)


@jit
def multiply_once(
    rows: tl.tensor,
    column: tl.tensor,
    start: tl.tensor,
    words: tl.tensor,
    weight: Matrix,
    cut: TileShape,
) -> tl.tensor:
    """A program's only product: ``rows_of_pass`` times the weight's rows from ``column`` on."""
    x = load_rows(rows, 0, column, start, 0, weight, cut)
    scales = scales_of_rows(0, column, weight, cut)
    total = multiply_packed(rows, 0, column, start, words, x, True, weight, cut)
    return added_up(total, scales, weight, cut)


@jit
def gate_and_up(both: tl.tensor, BLOCK_N: tl.constexpr) -> tuple[tl.tensor, tl.tensor]:
    """Gates and ups, [rows, BLOCK_N] each, of a tile [rows, 2 * BLOCK_N] whose panels alternate."""
    rows: tl.constexpr = both.shape[0]
    gate, up = tl.split(tl.permute(tl.reshape(both, [rows, BLOCK_N // 16, 2, 16]), 0, 1, 3, 2))
    return tl.reshape(gate, [rows, BLOCK_N]), tl.reshape(up, [rows, BLOCK_N])


@jit
def _sources(weight: Matrix, first: tl.tensor, column: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Where a matrix's words, int32, and scales begin for the panel at ``column``."""
    per_byte: tl.constexpr = 1 if weight.FORMAT == FP8 else 2
    data = weight.data + (first * (weight.K // per_byte) + column // 16 * (16 * weight.K // per_byte))
    if weight.FORMAT == FP8:
        return data.to(tl.pointer_type(tl.int32)), 0
    else:
        groups: tl.constexpr = weight.K // group_of(weight.FORMAT)
        return data.to(tl.pointer_type(tl.int32)), weight.scales + first * groups + column // 16 * (16 * groups)


@jit
def _words_of_step(
    first: tl.tensor, column: tl.tensor, start: tl.tensor, step: tl.constexpr, there: tl.tensor, weight: Matrix,
    cut: TileShape,
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    at = start_of_step(step, start, column, first, weight.N, cut)
    past: tl.constexpr = goes_past(step, weight.K, cut.DEPTH, cut.BLOCK_K, cut.SPLITS, cut.TURNED)
    return _load_words(first, column, at, past, there, weight, cut)  # type: ignore[no-any-return]


@jit
def _load_words(
    first: tl.tensor, column: tl.tensor, at: tl.tensor, past: tl.constexpr, there: tl.tensor, weight: Matrix,
    cut: TileShape,
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    """Words of the step at a depth, of [BLOCK_N / 8, parts, 8, 4] addresses (``neighbours``), and their scales; if
    such a step is ``there``. Where it goes ``past`` the edges others are read, that do no harm: rows are zero there, or
    sums aren't stored."""
    parts: tl.constexpr = parts_of(cut.PARTS, cut.BLOCK_K)
    wide: tl.constexpr = cut.BLOCK_K // parts
    per_block: tl.constexpr = words_of_block(weight.FORMAT)
    per_lane: tl.constexpr = words_of_lane(wide, weight.FORMAT)
    lanes: tl.constexpr = per_block // per_lane
    blocks: tl.constexpr = weight.K // 32
    tl.static_assert(per_lane <= 4, "a thread reads 16 bytes at once, no more")
    data, scales = _sources(weight, first, column)
    lane = tl.arange(0, 4)[None, None, None, :]
    block = lane // lanes + tl.arange(0, parts)[None, :, None, None] * (wide // 32)
    if past:
        block = tl.minimum(block, blocks - 1 - at // 32)
    eight = tl.arange(0, cut.BLOCK_N // 8)[:, None, None, None]
    row = tl.arange(0, 8)[None, None, :, None]
    near = data + (block * (16 * per_block) + row * per_block + lane % lanes * per_lane)
    offset = _panel_of(eight // 2, column, weight, cut) * (blocks * 16 * per_block) + eight % 2 * (8 * per_block)
    # Where the step stands comes last, here and below: then all steps share one address and differ by a constant.
    words = neighbours(near + offset + at // 32 * (16 * per_block), there, per_lane, True)
    if weight.FORMAT == FP8:
        return words, words  # no scales: Triton 3.7 takes no number where a tuple of tensors is handed on
    else:
        together: tl.constexpr = group_of(weight.FORMAT) // 32
        groups: tl.constexpr = blocks // together
        sixteen = tl.arange(0, cut.BLOCK_N // 16)[:, None, None, None]
        offset = _panel_of(sixteen, column, weight, cut) * (groups * 16) + row * 2
        if past or cut.BLOCK_K % (32 * together) != 0:
            return words, two_scales(scales + ((at // 32 + block) // together * 16 + offset), there)
        else:
            group = scales + (block // together * 16 + offset)
            return words, two_scales(group + at // 32 // together * 16, there)


@jit
def _panel_of(sixteen: tl.tensor, column: tl.tensor, weight: Matrix, cut: TileShape) -> tl.tensor:
    """The panel of the tile's ``sixteen``th 16 rows, counted from that at ``column``; past the end, the last one."""
    panel = sixteen if cut.INTER == 0 else sixteen // 2 + sixteen % 2 * (cut.INTER // 16)
    if weight.N % cut.BLOCK_N != 0 or cut.INTER % (cut.BLOCK_N // 2) != 0:
        panel = tl.minimum(panel, weight.N // 16 - 1 - column // 16)
    return panel


@jit
def _each_scale(pairs: tl.tensor, weight: Matrix) -> tl.tensor:
    """Scales [4, 8, parts, BLOCK_N / 8], taken out of the pairs that ``two_scales`` read."""
    dtype: tl.constexpr = weight.scales.dtype.element_ty
    if pairs.dtype == dtype:
        both = pairs
    elif dtype == tl.uint8:
        both = tl.join((pairs & 0xFF).to(tl.uint8), (pairs >> 8).to(tl.uint8))
    else:
        both = tl.join(*_both_of(pairs)).to(dtype, bitcast=True)
    return tl.reshape(tl.permute(both, 3, 2, 1, 0, 4), [4, 8, pairs.shape[1], 2 * pairs.shape[0]])


@jit
def load_rows(
    rows: tl.tensor, first: tl.tensor, column: tl.tensor, start: tl.tensor, step: tl.constexpr, weight: Matrix,
    cut: TileShape,
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    """What a step, counted from 0, multiplies of the rows, of [rows / 8, parts, 8, 4] addresses (``neighbours``): of
    4 bits that of the blocks' first 16 numbers, and that of the others; in FP8 pieces are 8 numbers apart."""
    at = start_of_step(step, start, column, first, weight.N, cut)
    past: tl.constexpr = goes_past(step, weight.K, cut.DEPTH, cut.BLOCK_K, cut.SPLITS, cut.TURNED)
    return _load_rows(rows, at, past, weight, cut)  # type: ignore[no-any-return]


@jit
def _load_rows(
    rows: tl.tensor, at: tl.tensor, past: tl.constexpr, weight: Matrix, cut: TileShape
) -> tuple[tl.tensor, tl.tensor]:
    """``load_rows`` of the step at a depth, with zeros where it goes ``past`` the edge."""
    parts: tl.constexpr = parts_of(cut.PARTS, cut.BLOCK_K)
    wide: tl.constexpr = cut.BLOCK_K // parts
    words: tl.constexpr = words_of_lane(wide, weight.FORMAT)
    lanes: tl.constexpr = words_of_block(weight.FORMAT) // words
    lane = tl.arange(0, 4)[None, None, None, :]
    depth = tl.arange(0, parts)[None, :, None, None] * wide + lane // lanes * 32 + lane % lanes * (4 * words)
    if weight.FORMAT == FP8 and words < 4:  # two of a word's numbers stand 8 further on
        depth -= lane % 2 * 4
    there = True
    if past:
        there = depth < weight.K - at
    sources = rows + depth + at
    low = _pieces(sources, there, weight, words)
    return low, 0 if weight.FORMAT == FP8 else _pieces(sources + 16, there, weight, words)


@jit
def _pieces(sources: tl.tensor, there: tl.tensor, weight: Matrix, WORDS: tl.constexpr) -> tuple[tl.tensor, ...]:
    """What so many words are multiplied by of the rows, bf16 numbers two in a register, in one piece or two."""
    pieces: tl.constexpr = pieces_of(WORDS, weight.FORMAT)
    numbers: tl.constexpr = 4 * WORDS // pieces
    registers: tl.constexpr = numbers // 2 if sources.dtype.element_ty == tl.bfloat16 and not SIMULATED else numbers
    first = neighbours(sources, there, registers, False)
    return first, neighbours(sources + 8, there, registers, False) if pieces == 2 else 0


@jit
def _joined_pieces(x: tl.tensor, weight: Matrix, WORDS: tl.constexpr) -> tl.tensor:
    """[4, 8, parts, rows / 8, pieces, registers] of what ``_pieces`` loaded."""
    first = joined(x[0])
    if pieces_of(WORDS, weight.FORMAT) == 2:
        return tl.permute(tl.join(first, joined(x[1])), 3, 2, 1, 0, 5, 4)
    else:
        return tl.permute(tl.expand_dims(first, 4), 3, 2, 1, 0, 4, 5)


@jit
def _multiplied(total: tl.tensor, tile: tl.tensor, x: tl.tensor, weight: Matrix, rows: tl.tensor) -> tl.tensor:
    """Adds to the sums [parts, BLOCK_N, rows] what one step gives: its words (``_load_words``) times its rows
    (``load_rows``)."""
    words, scales = tile
    words = tl.permute(joined(words), 3, 2, 1, 0, 4)
    low = _joined_pieces(x[0], weight, words.shape[4])
    if weight.FORMAT == FP8:
        a, b, c, d = fp8_words(words, rows)
        return dot(_first_factor(a, b, c, d), _second_factor(low, True), total)
    else:
        a, b, c, d, e, f, g, h = eight_numbers(words, _each_scale(scales, weight), rows, weight)
        total = dot(_first_factor(a, b, c, d), _second_factor(low, False), total)
        high = _joined_pieces(x[1], weight, words.shape[4])
        return dot(_first_factor(e, f, g, h), _second_factor(high, False), total)


@jit
def _first_factor(a: tl.tensor, b: tl.tensor, c: tl.tensor, d: tl.tensor) -> tl.tensor:
    """Lays the numbers that were unpacked from a step's words, four tensors [4, 8, parts, columns / 8, words], out as a
    product's first factor [parts, columns, depth], in the order in which ``_second_factor`` has the rows."""
    columns: tl.constexpr = 8 * a.shape[3]
    depth: tl.constexpr = 16 * a.shape[4]
    four = tl.join(tl.join(a, c), tl.join(b, d))
    if depth == 16:
        four = tl.reshape(four, [4, 8, a.shape[2], a.shape[3], 4])
        return tl.reshape(tl.permute(four, 2, 3, 1, 0, 4), [a.shape[2], columns, depth])
    else:
        four = tl.reshape(four, [4, 8, a.shape[2], a.shape[3], depth // 32, 2, 2, 2])
        return tl.reshape(tl.permute(four, 2, 3, 1, 4, 6, 0, 5, 7), [a.shape[2], columns, depth])


@jit
def _second_factor(x: tl.tensor, HALVES_APART: tl.constexpr) -> tl.tensor:
    """Rows [parts, depth, rows] as ``load_rows`` has them, for words whose halves are neighbours, or, HALVES_APART, 8
    numbers apart."""
    if x.dtype == tl.int32:
        x = tl.join(*_both_of(x))
    rows: tl.constexpr = 8 * x.shape[3]
    depth: tl.constexpr = x.numel // (x.shape[2] * rows)
    if depth == 16:
        x = tl.reshape(x, [4, 8, x.shape[2], x.shape[3], 4])
        return tl.reshape(tl.permute(x, 2, 0, 4, 3, 1), [x.shape[2], depth, rows])
    elif HALVES_APART:
        x = tl.reshape(x, [4, 8, x.shape[2], x.shape[3], 2, depth // 32, 2, 2])
        return tl.reshape(tl.permute(x, 2, 5, 4, 0, 6, 7, 3, 1), [x.shape[2], depth, rows])
    else:
        x = tl.reshape(x, [4, 8, x.shape[2], x.shape[3], depth // 32, 2, 2, 2])
        return tl.reshape(tl.permute(x, 2, 4, 6, 0, 5, 7, 3, 1), [x.shape[2], depth, rows])


@jit
def _both_of(words: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """The two bf16 numbers in each of the words."""
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        "mov.b32 {$0, $1}, $2;", "=h,=h,r", [words], dtype=(tl.bfloat16,) * 2, is_pure=True, pack=1
    )


@jit
def _parts_added(total: tl.tensor, PARTS: tl.constexpr) -> tl.tensor:
    """[rows, BLOCK_N] of sums [PARTS, BLOCK_N, rows], in pairs: every thread adds up all parts of its places.
    ``tl.sum`` would do so in all warps."""
    rows: tl.constexpr = total.shape[2]
    columns: tl.constexpr = total.shape[1]
    total = tl.permute(total, 2, 1, 0)
    if PARTS >= 16:
        total = _pairs_added(total, 8)
    if PARTS >= 8:
        total = _pairs_added(total, 4)
    if PARTS >= 4:
        total = _pairs_added(total, 2)
    if PARTS >= 2:
        total = _pairs_added(total, 1)
    return tl.reshape(total, [rows, columns])


@jit
def _pairs_added(total: tl.tensor, PAIRS: tl.constexpr) -> tl.tensor:
    even, odd = tl.split(tl.reshape(total, [total.shape[0], total.shape[1], PAIRS, 2]))
    return even + odd
