"""Speculative decoding and DFlash: what the screen of this program shows."""

from __future__ import annotations

from engine.lab.demo.corpus.explain.topic import Topic, topic

DECODING: tuple[Topic, ...] = (
    topic(
        "dflash", "DFlash", "dflash draft block target",
        what=(
            "DFlash is a [way|method] to speed up a language model: a small drafter proposes a [whole |]block of "
            "tokens and "
            "the [target|large] model checks it.",
            "DFlash is speculative decoding with a block diffusion drafter[ that guesses many tokens at once|].",
        ),
        how=(
            "With DFlash the drafter fills [a block of|all] 15 masked positions in one forward pass, then the target "
            "[verifies|checks] them together.",
            "The DFlash drafter reads hidden features of the target and [guesses|drafts] up to 15 tokens [at once|in "
            "one "
            "pass].",
        ),
        why=(
            "DFlash is fast because [one|a single] pass of the target can accept several drafted tokens.",
            "DFlash helps since drafting a block costs [little|one small pass], while the target would need [a pass "
            "for "
            "every|one pass per] token.",
        ),
        picture=(
            "DFlash is like a quick [helper|friend] who drafts [the rest of the line|a whole line], while the target "
            "only "
            "[ticks|marks] what is right.",
            "Think of DFlash as a [fast|keen] assistant who drafts a [sentence|line] and a [careful|strict] target "
            "who signs "
            "the correct part.",
        ),
        note=(
            "With DFlash the text is exactly the target's own: [wrong|bad] drafts only cost time.",
            "DFlash [never changes|does not change] the answer, because the target [decides|has the last word] on "
            "every "
            "token.",
        ),
    ),
    topic(
        "speculative_decoding", "speculative decoding", "specul draft target token",
        what=(
            "Speculative decoding lets a small drafter guess [several|the next] tokens, which the target model then "
            "[checks|verifies] in one pass.",
            "Speculative decoding is a [trick|method] that makes a target model write [faster|more tokens per pass] "
            "with the "
            "help of a drafter.",
        ),
        how=(
            "In speculative decoding the drafter proposes tokens, the target [scores|checks] them all at once and "
            "keeps "
            "[the longest right prefix|those that match].",
            "Speculative decoding [repeats|loops over] three steps: draft some tokens, verify them with the target, "
            "keep "
            "[the right ones|the matching prefix].",
        ),
        why=(
            "Speculative decoding pays off because checking many draft tokens takes [about as long as|little more "
            "time than] "
            "writing one on [most|many] dense models.",
            "Speculative decoding saves time since the target [runs|is run] once per group of tokens, not once per "
            "token.",
        ),
        picture=(
            "Speculative decoding is like a [junior|young] writer who drafts [a line|some words], while the target is "
            "the "
            "editor who keeps what is right.",
            "In speculative decoding the drafter is like [autocomplete|a friend finishing your sentence], and the "
            "target "
            "[accepts|takes] only the words it wanted anyway.",
        ),
        note=(
            "With speculative decoding the target's output [stays the same|does not change], [whatever|no matter "
            "what] the "
            "drafter proposes.",
            "If the drafter guesses badly, speculative decoding can [even be slower|lose time], but the [text|tokens] "
            "of the "
            "target [stay|remain] the same.",
        ),
    ),
    topic(
        "drafter", "the drafter", "drafter token small guess",
        what=(
            "The drafter is the small model that [guesses|proposes] the next tokens [before the target checks "
            "them|for the "
            "target].",
            "A drafter is a [quick|light] helper model: it guesses [a block of|several] tokens in [one|a single] pass.",
        ),
        how=(
            "The drafter sees the last token and [features|hidden states] of the target, and guesses [all masked|the "
            "next] "
            "positions [together|at once].",
            "A DFlash drafter starts from one known token and mask tokens, and [replaces|fills] every mask [in one "
            "pass|at "
            "once].",
        ),
        why=(
            "The drafter is small so that a guess costs [much less|far less] than a [pass|step] of the target.",
            "A good drafter [matters|is worth a lot]: the more tokens it guesses right, the [faster|quicker] the "
            "answer "
            "appears.",
        ),
        picture=(
            "The drafter is like a [pupil|student] who guesses what the teacher will write, [ten|a few] tokens ahead.",
            "Think of the drafter as a [scout|runner]: small and [quick|fast], it goes ahead and [looks|reports back].",
        ),
        note=(
            "The drafter has no [word list|output head] of its own: it guesses tokens with the target's [embedding and "
            "head|tables].",
            "A wrong guess of the drafter never [reaches|gets into] the text, since [each|every] token is checked by "
            "the "
            "target.",
        ),
    ),
    topic(
        "target", "the target model", "target model token check",
        what=(
            "The target is the model whose text you [read|see]: it [checks|verifies] every token that the drafter "
            "proposes.",
            "The target model is the [large|main] one: it [decides|has the last word] on each token.",
        ),
        how=(
            "The target model reads the whole draft in one pass and [computes|says] what it would have written at each "
            "[token|position], so it can check them all.",
            "At every position the target [picks|computes] its own token and checks [if|whether] the draft agrees.",
        ),
        why=(
            "The target model is slow to run, so each of its passes should yield [many|several] tokens.",
            "Since the target checks every token, the quality of the text is [the quality of that model|the model's "
            "own].",
        ),
        picture=(
            "The target is like a [teacher|master] who checks [homework|a draft]: the model's red pen has the last "
            "word.",
            "Think of the target model as the [editor|boss]: helpers may propose, but it checks [each "
            "word|everything].",
        ),
        note=(
            "In this demo the target is a tiny model [with|of] the Gemma 4 design; a real target has [billions "
            "of|thousands "
            "of times more] parameters.",
            "The target model also gives [hidden features|inner states] to the drafter, which makes token guesses "
            "[better|more accurate].",
        ),
    ),
    topic(
        "verification", "verification", "verif target draft token",
        what=(
            "Verification is the step in which the target [checks|scores] all drafted tokens in one pass.",
            "To verify means that the target [compares|checks] each draft token with the one it [would choose|wants] "
            "itself.",
        ),
        how=(
            "The target verifies from left to right: it accepts draft tokens [while|as long as] they match and "
            "[corrects|"
            "replaces] the first that differs.",
            "During verification the target [computes|finds] its own token for every position of the draft [in "
            "parallel|at "
            "the same time].",
        ),
        why=(
            "Verification keeps the output exact: [no|not one] draft token is [kept|accepted] against the target's "
            "will.",
            "Verifying many tokens in one pass is what makes [drafts|drafting] useful, since the target is "
            "[slow|costly] to "
            "run.",
        ),
        picture=(
            "Verification is like [marking|grading] a test: the target ticks draft tokens until the first mistake.",
            "Think of verification as a [gate|guard]: draft tokens pass in order until one [is wrong|has no ticket].",
        ),
        note=(
            "On a mixture of experts, verifying more tokens costs more, as more experts are [read|needed] for the "
            "draft.",
            "All draft tokens after the first wrong one are thrown away in verification, [even if they look "
            "right|since they "
            "follow a mistake].",
        ),
    ),
    topic(
        "acceptance_length", "the acceptance length", "accept token round length",
        what=(
            "The acceptance length is the number of tokens that one round [yields|adds], including the [bonus|extra] "
            "token.",
            "Acceptance length [says|tells] how many tokens each round of drafting and checking [brings|adds to the "
            "text].",
        ),
        how=(
            "Count the accepted draft tokens of a round and add one for the target's own token: that is the acceptance "
            "[length|length of the round].",
            "The mean acceptance length is the number of [new|written] tokens divided by the number of rounds.",
        ),
        why=(
            "A [high|long] acceptance length means [fewer|less] rounds per answer, hence more tokens per second.",
            "The acceptance length [decides|governs] the speed: each round takes [about|roughly] the same time, "
            "[short or "
            "long|whatever it yields].",
        ),
        picture=(
            "Acceptance length is like the [length|size] of a stride: each round is a step, and [long|bigger] steps "
            "cross "
            "the answer sooner.",
            "Imagine a [shop|baker] that accepts a batch per round: the acceptance length is how [many|much] of the "
            "batch is "
            "good.",
        ),
        note=(
            "Code has a [longer|higher] acceptance length than chat, because its tokens are easier to [guess|predict].",
            "With block size 16 the acceptance length is [at most 16|between 1 and 16]: 15 drafted tokens and one "
            "more.",
        ),
    ),
    topic(
        "block_size", "the block size", "block size token draft",
        what=(
            "The block size [sets|says] how many tokens a round may bring: size 16 means 15 drafted tokens and one "
            "more.",
            "Block size is the number of positions in a draft block, [with|counting] the known first token.",
        ),
        how=(
            "A block [starts|begins] with one known token, and the drafter fills the [rest|other positions] up to the "
            "block "
            "size.",
            "When you change the block size, the next round drafts [fewer or more|another number of] tokens.",
        ),
        why=(
            "A [larger|bigger] block size can yield more tokens per round, but [late|far] draft positions are often "
            "wrong.",
            "A small block size [wastes fewer|throws away fewer] draft tokens, which helps when [guesses|drafts] are "
            "poor.",
        ),
        picture=(
            "Block size is like the [length|size] of a ladder: a draft can [climb|reach] no further than its tokens "
            "allow.",
            "Think of the block size as the number of [seats|places] on a [bus|cart] of draft tokens.",
        ),
        note=(
            "The block size [does not change|never changes] the text, only how many draft tokens are [tried|checked].",
            "You can [move|set] the block size from 2 to 16 while this program [writes|runs], without touching the "
            "tokens.",
        ),
    ),
    topic(
        "bonus_token", "the bonus token", "bonus token target accept",
        what=(
            "The bonus token is the extra token that the target [adds|gives] when it accepted the whole draft.",
            "A bonus token comes [free|at no cost]: after all drafts are accepted, the target has [already "
            "computed|in hand] "
            "one more.",
        ),
        how=(
            "The pass that checks the last draft token also [predicts|computes] the next one, and the target "
            "[adds|keeps] it "
            "as a bonus.",
            "If every draft token is accepted, the [next|following] choice of the target becomes the bonus token.",
        ),
        why=(
            "The bonus token means that [even|also] a perfect draft brings one token more than was [drafted|accepted].",
            "Thanks to the bonus or the corrected token, [each|every] pass of the target yields at least one token.",
        ),
        picture=(
            "The bonus token is like the [thirteenth|extra] roll in a baker's dozen: accept twelve tokens, get one "
            "more.",
            "Think of the bonus token as a [prize|reward] from the target for a [perfect|flawless] draft.",
        ),
        note=(
            "If a draft token is wrong, the target puts its own token there instead of a bonus: [that|this] one is "
            "called "
            "corrected.",
            "Acceptance length counts the bonus token [too|as well], so block size 16 can [reach|give] 16.",
        ),
    ),
    topic(
        "lossless", "lossless decoding", "lossless target same text",
        what=(
            "Lossless decoding means that the text is the same as the target [alone would write|writes without a "
            "drafter].",
            "Lossless means that speed [costs nothing in|does not touch] quality: the text stays the target's own.",
        ),
        how=(
            "Decoding is lossless because a draft token is kept only if it is the same one the target [chooses|picks].",
            "To stay lossless, the target [makes|draws] every choice itself and keeps drafts that are [the same|equal "
            "to "
            "it].",
        ),
        why=(
            "Lossless decoding matters because [you|a user] should get the same text, [only|just] sooner.",
            "Since it is lossless, you can [trust|read] the text as if the target had written it [alone|by itself].",
        ),
        picture=(
            "Lossless decoding is like [taking|using] a short cut: you reach the same [place|end], and the text is "
            "[intact|"
            "complete].",
            "Think of lossless as packing a [suitcase|box]: the same [things|text] come out [as|that] went in.",
        ),
        note=(
            "With the same seed, lossless decoding gives the same text at every [block size|verify width].",
            "In low precision, tiny [rounding|number] errors can break a near tie, so that the same text is no longer "
            "[certain|"
            "sure] and lossless runs must be tested.",
        ),
    ),
    topic(
        "block_diffusion", "block diffusion", "diffusion block mask token",
        what=(
            "Block diffusion [writes|produces] a block of tokens together: it starts from masks and [fills|replaces] "
            "them.",
            "A block diffusion model [predicts|guesses] all masked tokens of a block at once[, not one by one|].",
        ),
        how=(
            "Block diffusion puts mask tokens into the empty places and [lets|has] the model guess [every|each] one in "
            "parallel.",
            "In DFlash one step of block diffusion is [enough|all]: every mask becomes a draft token.",
        ),
        why=(
            "Block diffusion is quick, because the [time|cost] does not grow with each token of the block.",
            "With block diffusion a drafter needs one pass for a block, [not|instead of] one per token.",
        ),
        picture=(
            "Block diffusion is like [filling|solving] a crossword line: all masked [squares|fields] of the block at "
            "once.",
            "Imagine a [fogged|misty] window: diffusion wipes the whole block of masks clean in one [move|stroke].",
        ),
        note=(
            "In block diffusion the tokens of a block are guessed [together|in parallel], so [later|far] ones are "
            "less sure.",
            "A block diffusion guess may be wrong, [so|therefore] the target checks [each|every] token.",
        ),
    ),
    topic(
        "rejected_token", "a rejected token", "reject token draft target",
        what=(
            "A rejected token is a draft that the target [does not agree with|would not have written].",
            "Rejected tokens are [wrong guesses|misses]: the drafter proposed them and the target [said no|refused].",
        ),
        how=(
            "The target [finds|meets] the first draft token that differs, puts its own token there and rejects the "
            "rest.",
            "When a token is rejected, [everything|all] after it in the draft [goes too|is rejected as well].",
        ),
        why=(
            "Tokens are rejected so that the text stays [exactly|just] what the target [wants|would write].",
            "Many rejected tokens mean a [slow|poor] round: the draft work was [lost|for nothing].",
        ),
        picture=(
            "A rejected token is like a [wrong|misplaced] puzzle piece: the target takes it out and [puts|lays] the "
            "right "
            "one.",
            "Think of a rejected token as a [crossed out|struck] word in a draft.",
        ),
        note=(
            "Rejected draft tokens leave the cache too: it is [rolled|moved] back to the last accepted token.",
            "This program [shows|paints] the rejected tokens of the latest draft, [so that you see the misses|beside "
            "the "
            "text].",
        ),
    ),
    topic(
        "rollback", "a cache rollback", "cache roll token draft",
        what=(
            "A rollback [removes|takes] the rejected draft tokens from the cache[ again|].",
            "Rolling back means that the cache [forgets|drops] every token [after|behind] the last accepted one.",
        ),
        how=(
            "A rollback [only moves|is just a move of] a cursor: cache entries [after|behind] it are "
            "[overwritten|reused] by "
            "the next tokens.",
            "After each round the cache is rolled back to the [end|last] of the accepted tokens.",
        ),
        why=(
            "Without a rollback, [wrong|rejected] draft tokens in the cache would [disturb|spoil] everything that "
            "follows.",
            "A rollback keeps the cache [true|exact]: it holds the tokens of the text and no [others|rejected draft].",
        ),
        picture=(
            "A cache rollback is like [lifting|moving] the pen back: the next token is written over the [old|wrong] "
            "one.",
            "Think of rolling back a tape: the cache [plays on|continues] from the last good token.",
        ),
        note=(
            "Rolling back a cache is [cheap|quick], since no token has to be [moved|copied].",
            "A ring cache needs some slack, or a rollback [would|could] find old tokens already overwritten.",
        ),
    ),
    topic(
        "verify_width", "the verify width", "verif width token expert",
        what=(
            "The verify width is the number of draft tokens that the target [checks|verifies] in a round.",
            "Verify width [says|tells] how much of the draft is sent to the target for [checking|verification].",
        ),
        how=(
            "The program [chooses|picks] a verify width from [how sure|how certain] the drafter is of each token.",
            "A narrow verify width [cuts|drops] the unsure end of a draft, [before|so that] no time is spent on those "
            "tokens.",
        ),
        why=(
            "On a mixture of experts a wide verify pass [reads|loads] more experts, so each extra token [has a "
            "price|costs].",
            "The right verify width [balances|weighs] tokens won against the cost of more experts.",
        ),
        picture=(
            "Verify width is like the [width|size] of a net: wider catches more tokens, but is [heavier|harder] to "
            "pull.",
            "Think of the verify width as [how many|the] exam papers a teacher takes: each token [needs|takes] a look.",
        ),
        note=(
            "The verify width never changes the text, since every token [kept|shown] is [checked|verified].",
            "On real hardware, verifying 16 tokens can cost three to five [single|plain] steps when many experts are "
            "[used|"
            "hit], so width matters.",
        ),
    ),
)  # fmt: skip
