"""The lesson: how speculative decoding works, in ten pages, and three for experts behind them."""

from __future__ import annotations

from engine.sampling.philox import uniform
from engine.speculation.lookup import num_agreed

from ..conversation.turn import Turn
from ..figures.labels import COLOURS, TOKENS_PER_ROUND
from ..rounds.passes import REASON
from .course import Course, OneRound, Page, Recording, SideBySide, Written, mean_ms, open_recording, passes, token_ms

TITLE = "Fifteen guesses at once"
CORRECTED = COLOURS["corrected"]


def open_lesson() -> Course:
    """The lesson over the bundled recording; every number of it that the recording can tell comes from there."""
    of = open_recording()
    pages = (_alone(of), _checked(of), _block(of), _wrong(of), _dice(of), _race(of), _talk(of), _sizes(of), _text(of))
    return Course(TITLE, (*pages, _try(of)), of.origin, (_memory(of), _experts(of), _guesses()))


def _alone(of: Recording) -> Page:
    facts = of.alone.statistics
    text = f"""
A language model writes one token, a word or a piece of one, reads it back, and writes the next. This answer has
{facts.num_tokens} tokens, and the model ran {passes(of.alone)} times for the {facts.num_tokens - 1} after the first:
{token_ms(of.alone):.1f} ms each, {facts.tok_s:.0f} tokens per second.

Each run reads the weights from memory to produce a single token. The arithmetic is soon done; the reading is what
takes the time. So the question is: can one reading serve several tokens?"""
    return Page("One token at a time", text, Written(of.alone))


def _checked(of: Recording) -> Page:
    index = next(index for index, step in enumerate(of.drafted.rounds) if step.draft)
    step = of.drafted.rounds[index]
    text = f"""
Several tokens can be checked in one run, if somebody says what they might be: the model looks at all their places
together. So a small model, the **drafter**, guesses ahead, and the large one, the **target**, checks.

Here the drafter guessed {len(step.draft)} tokens in {step.draft_ms:.1f} ms. One run of the target,
{step.verify_ms:.1f} ms, checked them: {step.num_accepted} were right. With the token that the target adds itself, this
round wrote {len(step.emitted)} tokens. These are the times of this one round; they vary from round to round, and the
averages come later."""
    return Page("A cheap guess, checked", text, OneRound(of.drafted, index, token_ms(of.alone)))


def _block(of: Recording) -> Page:
    step = max((step for step in of.drafted.rounds if step.draft), key=lambda step: step.num_accepted)
    guesses, took = len(step.draft), step.draft_ms or 0.0
    text = f"""
Most drafters write like any language model: one guess, then the next. A guess that costs little still has to wait
for the one before it.

DFlash fills the whole block together, as an image model fills a picture: {guesses} places in a single pass, here of
{took:.1f} ms. One at a time, {guesses} such passes would take {guesses * took:.0f} ms. The price: no guess knows for
certain what stands before it, so the later ones are less sure."""
    return Page("Why a block at once", text, REASON, 6.0)


def _wrong(of: Recording) -> Page:
    index, step = [(index, step) for index, step in enumerate(of.drafted.rounds) if step.is_corrected][2]
    rejected, own = step.draft[step.num_accepted], step.emitted[-1]
    text = f"""
The target says what it would write at every place, and a guess is kept only if it is exactly that. Here the drafter
wanted “{_shown(rejected.text)}” and was {rejected.probability:.0%} sure; the target gives that
{rejected.target_probability:.1%} and writes “{_shown(own.text)}” ({own.probability:.1%}). Being sure doesn't help the
drafter.

Everything behind a wrong guess falls with it, since it was guessed for another text: here
{len(step.draft) - step.num_accepted - 1} more. But the target's own token stays, and is called *{CORRECTED.name}*:
{CORRECTED.says}. A round never yields less than one, and never a token that the target wouldn't have written."""
    return Page("How a wrong guess is found", text, OneRound(of.drafted, index, token_ms(of.alone)))


def _dice(of: Recording) -> Page:
    index, step = next((index, step) for index, step in enumerate(of.dice.rounds) if step.is_corrected)
    rejected, own = step.draft[step.num_accepted], step.emitted[-1]
    before = of.dice.rounds.tokens_before(index)
    at = of.dice.num_prompt_tokens + before + step.num_accepted
    alone, drafted = of.dice_alone.statistics.num_tokens, of.dice.statistics.num_tokens
    text = f"""
At temperature {step.temperature:g} the target draws its tokens by lot. The random number of each place depends on the
seed and the place alone, so the draw is the same whether the drafter guessed or not. Here
u = {uniform(int(of.dice.settings["seed"]), at):.3f} fell on “{_shown(own.text)}”, which had {own.probability:.1%};
the guess was “{_shown(rejected.text)}”, which had {rejected.target_probability:.1%}.

That makes a promise that can be checked. One token at a time, this answer has {alone} tokens; with drafts it has
{drafted}. From the beginning, {_shared(of.dice_alone, of.dice)} of them are the same."""
    return Page("Exact, with dice too", text, OneRound(of.dice, index, token_ms(of.dice_alone)))


def _race(of: Recording) -> Page:
    alone, drafted = of.alone.statistics, of.drafted.statistics
    block = max(step.block_size for step in of.drafted.rounds)
    text = f"""
The same question, the same answer: {_shared(of.alone, of.drafted)} of {alone.num_tokens} tokens are the same. One token
at a time the target ran {passes(of.alone)} times; with drafts of {block - 1} it ran {passes(of.drafted)} times, and the
drafter as often.

{alone.tok_s:.0f} against {drafted.tok_s:.0f} tokens per second: {drafted.tok_s / alone.tok_s:.2f} times as fast. Not
{passes(of.alone) / passes(of.drafted):.1f} times, as the number of runs would suggest: a run that checks {block} places
takes longer than one for a single token, {mean_ms(of.drafted.rounds, "verify_ms"):.1f} ms on average instead of
{token_ms(of.alone):.1f}, and drafting takes {mean_ms(of.drafted.rounds, "draft_ms"):.1f}."""
    return Page("The race", text, SideBySide((of.alone, of.drafted)))


def _talk(of: Recording) -> Page:
    code, talk = of.drafted.statistics, of.talk.statistics
    none = sum(step.num_accepted == 0 for step in of.talk.rounds if step.draft)
    text = f"""
Code repeats its names and closes its brackets: a drafter can see what comes. In prose many words would do, and the
drafter's is often not the one the target chose. Here each orange word is a guess that went wrong.

For the program a round wrote {code.tokens_per_round:.2f} tokens on average, for this explanation
{talk.tokens_per_round:.2f}. In {none} of {passes(of.talk)} rounds not even the first guess was right. The screen
says “{TOKENS_PER_ROUND.name}”: {TOKENS_PER_ROUND.says}. Papers call it the acceptance length."""
    return Page("It depends on the text", text, Written(of.talk))


def _sizes(of: Recording) -> Page:
    large, small = of.talk.statistics, of.talk_small.statistics
    sizes = [max(step.block_size for step in answer.rounds) for answer in (of.talk, of.talk_small)]
    thrown = [each.num_draft_tokens - each.num_accepted_draft_tokens for each in (large, small)]
    text = f"""
A guess that falls was drafted and checked for nothing. For the explanation, blocks of {sizes[0]} threw away {thrown[0]}
of {large.num_draft_tokens} guesses; blocks of {sizes[1]} threw away {thrown[1]} of {small.num_draft_tokens}, in
{passes(of.talk_small)} rounds instead of {passes(of.talk)}.

A round with the large block took {mean_ms(of.talk.rounds):.1f} ms, with the small one
{mean_ms(of.talk_small.rounds):.1f} ms. So what counts is neither the acceptance length nor the price of a round, but
both together: tokens per second."""
    return Page("Sixteen is not always best", text, SideBySide((of.talk_alone, of.talk, of.talk_small)))


def _text(of: Recording) -> Page:
    text = """
Who edits a file, quotes or goes on with a list has most of the answer in the conversation already. So the text itself
can guess, without a second model: look where the newest tokens stood before, and guess that the same comes next again.
That is *lookup*. In this program, see how often a name comes back.

The target checks such guesses as it checks the drafter's. They can be wrong, never harmful: the answer stays the same.
Where many of the newest tokens match, the text guesses alone and the drafter rests; where few do, both guess, and the
likelier guesses are checked. How often such guesses are right is learned while the answer is written, so a text that
misleads is soon not looked up any more.

In the chat the step view says how far back a guess stood. /speculation drafter, lookup, on and off choose who may
guess."""
    return Page("The text guesses, too", text, Written(of.drafted))


def _try(of: Recording) -> Page:
    text = f"""
The chat shows all of this while it happens: dflash-chat opens it. Alt+↑ and Alt+↓ change the block size in the
middle of an answer, F3 shows the rounds, F5 slows them down, and F6 races the target against its drafter on your own
question.

What you saw was recorded on a small model on an ordinary processor ({of.alone.statistics.tok_s:.0f} tokens per second
alone). The figures of a large model are others; the mechanism is the same."""
    return Page("Try it", text, Written(of.drafted))


def _memory(of: Recording) -> Page:
    index, step = next((index, step) for index, step in enumerate(of.drafted.rounds) if step.is_corrected)
    text = f"""
To look back on the text, most models keep two rows of numbers for every token, its key and its value. Those of guesses
lie behind them, and those of guesses that fall are simply written over. Three of four layers of the newer Qwens keep no
list but a memory of fixed size, a matrix for each head: every token is mixed into it, while what was there fades a
little. What was mixed in can't be taken out again.

So a round must not touch it before it is known what counts. The target reads the memory as it stood, and the
{len(step.draft)} guesses of this round behind it, row by row; what each row would change is noted beside it. Then the
rows that count, {len(step.emitted)} of {len(step.draft) + 1}, are taken in, and the memory is, to the last bit, as if
nobody had guessed. Where a tree of guesses is checked, each branch begins with the memory that the guess before it
left.

The recording is of a model without such a memory; its round shows which rows would be taken in."""
    return Page("A memory that forgets", text, OneRound(of.drafted, index, token_ms(of.alone)))


def _experts(of: Recording) -> Page:
    text = """
Gemma 4 26B-A4B is a mixture of experts: each token goes through 8 of 128 in every layer. Sixteen tokens want more
different ones, and each one wanted must be read from memory. These figures are not from the recording: they are
computed from the model's shapes for an NVIDIA H200 that reads 4.3 TB/s: how many experts a layer needs for so many
tokens, what is read for them in all, and how long that takes at least. Of two figures the first is for tokens that
choose their experts independently of one another, the second for tokens that choose much alike, as neighbours in a text
do.

| tokens | experts | GB read | milliseconds |
|--:|--:|--:|--:|
| 1 | 8 | 7.6 | 1.78 |
| 4 | 29 / 23 | 15.2 / 13.1 | 4.07 / 3.59 |
| 8 | 52 / 36 | 23.2 / 17.5 | 5.94 / 4.61 |
| 16 | 82 / 50 | 34.2 / 22.7 | 8.50 / 5.83 |

Checking sixteen costs 3.3 to 4.8 times as much as writing one. Measured with vLLM 0.26.0 on one H200 (2026-11-20,
random weights, routing forced the same two ways): 4.12 ms for a token alone, 12.66 / 9.93 ms for a round of sixteen,
drafting included. So sixteen pay for code, and four or eight may be better for talk."""
    return Page("Why experts make guesses dearer", text)


def _guesses() -> Page:
    text = """
Whoever guesses changes the time, never the text: the target says each token itself. What differs is what a guess is
made from, and how many passes of the drafter fill the places behind the newest token, ▪.

| | a guess is made from | places | passes |
|--|--|--|--:|
| DFlash | the text alone | ▪ → a b c d | 1 |
| DFlash 2 | the text, chosen by what best follows the guess before | ▪ → a→b→c→d | 1 |
| DSpark | the text, its odds moved by the guess before | ▪ → a→b→c→d | 1 |
| DSpine | the text and the place before, scored behind the guess before | ▪ → a→b→c→d | 1 |
| EAGLE-3, MTP | the guess before, and the drafter's own thought there | ▪ → a → b → c | one each |
| lookup | what followed where the newest tokens stood before | ▪ ← the text | none |

The first guess of a chain sees what the target saw, later ones what the drafter made of it; so a chain is as deep as
its guesses are worth. A block costs one pass however long it is, and its guesses don't know of one another unless
something small puts them in order. A lookup costs nothing, and stands beside any of the others. dflash-chat race MODEL
--draft NAME,OTHER,lookup,none has them write the same text on one clock."""
    return Page("Four ways to guess", text)


def _shown(text: str | None) -> str:
    return (text or "").replace("\n", "⏎").replace("\t", "⇥").strip() or "␣"


def _shared(one: Turn, other: Turn) -> int:
    """How many tokens two answers share from their beginning."""
    return num_agreed(*([token.id for token in each.tokens] for each in (one, other)))
