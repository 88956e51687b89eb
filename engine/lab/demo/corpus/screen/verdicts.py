"""What the screen shows about tokens and rounds."""

from __future__ import annotations

from engine.lab.demo.corpus.chat.families import Family

_LEGEND = "[F1 shows the legend.|The legend behind F1 has the colours of your theme.|See the legend behind F1.]"

VERDICTS: tuple[Family, ...] = (
    Family(
        "colours",
        (
            "What do the colours mean?", "what do the colors mean", "What does the color mean?",
            "what are the colours for?", "explain the colours",
        ),
        (
            "[What|Why] are the [colours|colors][ for|]?", "Why are [the|some] [words|tokens] [coloured|in colour]?",
            "Why is the text [coloured|colored|so colourful]?", "What is the [legend|colour code|color code]?",
            "[Explain|Tell me about] the [colours|colors][ of the tokens| on the screen|][.|]", "why the colours",
            "What do the different [colours|colors] [stand for|show|say]?", "Where is the legend?",
            "How do I read the [colours|colors]?", "What do the [styles|looks] of the tokens mean?",
        ),
        (
            "Colours show what became of a guess: accepted, corrected (underlined) or bonus (bold). " + _LEGEND,
            "They are verdicts: an accepted token was guessed right, a corrected one is underlined, a bonus is bold. "
            + _LEGEND,
        ),
        ("accepted", "corrected", "bonus", "f1"),
    ),
    Family(
        "corrected",
        (
            "what does the orange mean", "What does orange mean?", "what is orange", "Why is this word underlined?",
            "What is a corrected token?", "what does corrected mean",
        ),
        (
            "What does [the |]orange [color |colour |text |word |]mean?",
            "[What|Why] is [the|that] orange [one|word|text]?",
            "Why are some [words|tokens] [orange|underlined|bold and underlined]?", "orange?", "And [the |]orange?",
            "What do[es|] [the |]underlined [words|tokens|text] mean?", "why is it orange",
            "what about the orange ones",
            "What is [the|an] underlined [word|token]?", "What are [the |]orange [words|tokens|letters]?",
            "[Explain|Tell me what is] orange[.|]",
        ),
        (
            "That is a corrected token, underlined: the draft was wrong there, so the target wrote its own. " + _LEGEND,
            "Orange and underlined means corrected: the drafter guessed wrong and the target put its own token. "
            + _LEGEND,
        ),
        ("corrected", "target", "f1"),
    ),
    Family(
        "accepted",
        (
            "What does blue mean?", "what does the blue mean", "what is blue", "What is an accepted token?",
            "what does accepted mean",
        ),
        (
            "What does [the |]blue [color |colour |text |word |]mean?",
            "[What|Why] is [the|that] blue [one|word|text]?",
            "Why [is|are] [most of the text|most words|so many tokens|nearly everything] blue?", "blue?",
            "And [the |]blue?",
            "What are [the |]blue [words|tokens|letters]?", "why is it blue", "Why is everything blue?",
            "what about the blue ones", "Which tokens were accepted?", "How do I see what was accepted?",
        ),
        (
            "Most of the text is accepted tokens: the drafter guessed them and the target agreed. " + _LEGEND,
            "That is an accepted token in most themes: a guess of the drafter that the target kept. " + _LEGEND,
        ),
        ("accepted", "drafter", "f1"),
    ),
    Family(
        "bonus",
        ("What does green mean?", "what does the green mean", "what is green", "What does bold mean?"),
        (
            "What does [the |]green [color |colour |text |word |]mean?",
            "[What|Why] is [the|that] green [one|word|text]?",
            "Why are some [words|tokens] [green|bold]?", "green?", "And [the |]green?", "why is it green",
            "What do[es|] [the |]bold [words|tokens|text] mean?", "What are [the |]green [words|tokens|letters]?",
            "what about the green ones", "What is [the|a] bold [word|token]?", "Where do I see a bonus token?",
        ),
        (
            "In most themes that is a bonus token, bold: every guess was right and the target added one for free. "
            + _LEGEND,
            "A bonus token, as a rule: the whole draft was accepted, so the check gave one token more. " + _LEGEND,
        ),
        ("bonus", "f1"),
    ),
    Family(
        "rejected",
        (
            "What does struck out mean?", "what does the purple mean", "Why are some words crossed out?",
            "what is purple", "What does red mean?", "what is the struck-out text",
        ),
        (
            "What does [the |]purple [color |colour |text |word |]mean?",
            "[What|Why] is [the|that] [purple|red|pink] one?",
            "Why are [some|the] [words|tokens] [struck out|struck through|crossed out|struck-out|purple|red]?",
            "What do[es|] [the |]struck[-| ]out [words|tokens|text] mean?", "purple?", "And [the |]purple?",
            "What [is|are] [the |]crossed out [text|words|tokens]?", "strikethrough?", "What is a strike through?",
            "Why is there a line through [it|the word|some words]?", "What was thrown away?",
        ),
        (
            "Struck out means rejected: the drafter guessed it and the target said no. It stands in the strip of the "
            "latest round only. " + _LEGEND,
            "Those are rejected guesses, struck out: thrown away and never part of the answer. " + _LEGEND,
        ),
        ("rejected", "struck out", "f1"),
    ),
    Family(
        "plain",
        ("What does white mean?", "What does italic mean?", "why is some text italic", "What is target alone?"),
        (
            "What does [the |]white [color |colour |text |word |]mean?",
            "Why are some words [white|italic|not coloured]?",
            "What do[es|] [the |]italic [words|tokens|text] mean?", "white?", "And [the |]white?",
            "Why has [this|some] text no colour?", "What are [the |]white [words|tokens|letters]?",
            "What does [target alone|alone] mean?",
        ),
        (
            "That is the target alone: no guess was checked there, as with the first token of an answer. " + _LEGEND,
            "Such a token was written by the target alone, without a draft. " + _LEGEND,
        ),
        ("target alone", "f1"),
    ),
    Family(
        "histogram",
        (
            "What is the histogram?", "what do the bars mean", "what does the histogram show",
            "What is accepted per round?", "what is the chart on the right",
        ),
        (
            "[Explain|Describe] the [histogram|bars|chart][.|]", "What do the [bars|columns] [show|mean|say]?",
            "How do I read the [histogram|bars|chart]?", "What is the [chart|diagram|graph|bar chart][ for|]?",
            "What are the [bars|columns] [at the side|on the right|in the sidebar]?", "histogram?",
            "What does [the chart|accepted per round] [mean|show]?", "What is on the right?",
        ),
        (
            "The histogram counts rounds by how many drafted tokens they kept, from 0 to 15. [Bars far right are good.|"
            "A click on a bar goes to such a round.]",
            "Accepted per round: each bar counts the rounds that kept so many drafted tokens, 0 on the left, 15 on the "
            "right.",
        ),
        ("round", "15"),
    ),
    Family(
        "tau",
        ("What is acceptance length?", "what does τ mean", "What is tau?", "what is the acceptance length"),
        (
            "[Explain|Describe] [the |]acceptance length[.|]",
            "What does [acceptance length|tau|the τ] [mean|show|say]?",
            "What is a good acceptance length?", "tau?", "What is the [big|second] number[ at the top|]?",
            "What does the number next to tokens per second mean?",
        ),
        (
            "Acceptance length (τ) is the mean number of tokens a round yields, the target's own one included. 1 means "
            "that no guess was kept.",
            "It is how many tokens a round gives on average, the target's own one included: [more is faster|1 is "
            "none accepted, 16 is the best].",
        ),
        ("round", "token"),
    ),
    Family(
        "speed",
        ("Why are you so fast?", "How fast are you?", "what is tokens per second", "what does tok/s mean"),
        (
            "[How|Why] can you [answer|write|type] so [fast|quickly]?", "What makes you [so |]fast?",
            "Why is this so quick?", "How do you [get|reach] this speed?", "What is your speed?",
            "What is [the secret|your secret|the trick]?", "What does [tokens/s|tok/s|tokens per second] mean?",
            "Where do I see the speed?", "How [fast|quick] is this?", "Why are you so slow[ today|]?",
        ),
        (
            "A drafter proposes a block of tokens and I check them all at once. The speed is the tokens/s at the top.",
            "[The trick is|That is] DFlash: a small drafter guesses [many|up to 15] tokens and I accept the right "
            "ones. Tokens/s is the speed.",
        ),
        ("tokens/s",),
    ),
    Family(
        "strip",
        ("What is the strip above the prompt?", "what are the words above the prompt", "what is the latest round"),
        (
            "What [is|stands] above the [prompt|input]?", "What are the numbers under the [words|tokens]?",
            "What is [the round strip|the strip|that line above the prompt]?", "What do the small numbers mean?",
            "[Explain|Describe] the strip[.|]", "Why do words appear above the [prompt|input line]?",
        ),
        (
            "The strip shows the latest round: every drafted token, what became of it, and how sure the drafter was.",
            "That is the latest round, token by token: kept, corrected or struck out, with the drafter's probability.",
        ),
        ("latest round", "drafter"),
    ),
)  # fmt: skip
