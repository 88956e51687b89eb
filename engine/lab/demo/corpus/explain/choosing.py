"""From scores to text: how the next token is chosen."""

from __future__ import annotations

from engine.lab.demo.corpus.explain.topic import Topic, topic

CHOOSING: tuple[Topic, ...] = (
    topic(
        "softmax", "softmax", "softmax score probabilit sum",
        what=(
            "Softmax turns scores into probabilities that [sum|add] up to one.",
            "The softmax is a function that makes [large|high] scores [likely|probable] and small ones rare, as "
            "probabilities.",
        ),
        how=(
            "Softmax takes the exponential of each score and divides by the sum of [all of them|these].",
            "In a softmax every score is raised as a power of e, then [scaled|divided] so that the sum is one.",
        ),
        why=(
            "Softmax is needed because raw scores can be [any number|negative], and a choice needs probabilities.",
            "Softmax keeps the [order|ranking] of the scores and makes a [proper|valid] set of probabilities.",
        ),
        picture=(
            "Softmax is like sharing a cake by score: [everyone|each] gets a slice, and the slices sum to [one cake|a "
            "whole].",
            "Think of softmax as [votes|points] turned into shares: the best score gets the largest probability.",
        ),
        note=(
            "Dividing the scores by a temperature before the softmax makes probabilities [sharper or flatter|more or "
            "less "
            "even].",
            "For safe numbers, the largest score is [subtracted|taken away] first, which leaves the softmax "
            "[unchanged|the "
            "same].",
        ),
    ),
    topic(
        "logits", "a logit", "logit score token softmax",
        what=(
            "Logits are the raw scores that a model gives to [every|each] possible next token.",
            "A logit is a score before the softmax: one [number|value] per token.",
        ),
        how=(
            "The last vector of the model is multiplied with every token's embedding, [which gives|giving] the logits.",
            "A softmax turns logits into probabilities; the highest logit is the [likeliest|best] token.",
        ),
        why=(
            "Logits matter because all decoding [rules|methods] start from these scores of the tokens.",
            "Comparing logits is a [strict|sharp] test: two programs agree if [all|their] scores agree.",
        ),
        picture=(
            "Logits are like [points|marks] in a contest: each token has a score and the highest [leads|wins].",
            "Think of a logit as the [applause|cheers] for a token, measured as a score.",
        ),
        note=(
            "Gemma caps its logits: no score goes beyond 30 [in size|either way], for any token.",
            "A constant [added to|taken from] all logits changes nothing after the softmax.",
        ),
    ),
    topic(
        "temperature", "temperature", "temperature token random sampl",
        what=(
            "Temperature [sets|controls] how random the choice of the next token is.",
            "The temperature is a number that [flattens or sharpens|shapes] the probabilities before sampling.",
        ),
        how=(
            "Temperature divides the scores before sampling: [below|under] 1 makes the likely token likelier, above 1 "
            "makes "
            "it [less so|rarer].",
            "At temperature 0 nothing is random: the [best|most likely] token always wins.",
        ),
        why=(
            "A higher temperature gives [variety|more surprises]; a low one gives [safe|steady] and less random text.",
            "Temperature matters because [code|facts] and [poems|stories] need a different amount of random sampling.",
        ),
        picture=(
            "Temperature is like [heat|warmth] in a pot: the hotter, the more the tokens jump at random.",
            "Think of temperature as [courage|boldness]: a cold model takes the [sure|safe] token, a warm one sampling "
            "[wild|risky] ones.",
        ),
        note=(
            "At a [high|higher] temperature the draft is accepted less often, because random tokens are hard to [guess|"
            "predict].",
            "You can change the temperature while the model writes; [it counts|it takes effect] from the next sampled "
            "[token|round of tokens].",
        ),
    ),
    topic(
        "greedy_decoding", "greedy decoding", "greedy token likely best",
        what=(
            "Greedy decoding always takes the most likely [next |]token.",
            "Greedy decoding is the [simplest|plainest] rule: [choose|pick] the best token at [each|every] step.",
        ),
        how=(
            "In greedy decoding the model scores all tokens and [keeps|takes] the best [one|of them].",
            "Greedy decoding [is|equals] sampling at temperature 0: no dice, just the likely [token|choice].",
        ),
        why=(
            "Greedy decoding gives the same [answer|text] every time, and the likely token is [often|usually] a good "
            "one.",
            "Greedy text is easy to draft, since the best token is the [most predictable|easiest to guess].",
        ),
        picture=(
            "Greedy decoding is like a [hiker|walker] who takes the best looking path at every fork, token by token.",
            "Think of a greedy [eater|guest] who always [grabs|takes] the best piece: the most likely one.",
        ),
        note=(
            "Greedy decoding can get [dull|stuck in loops], because the best next token is not always part of the "
            "best [text|"
            "sentence].",
            "With greedy decoding, speculation [must|has to] give the same tokens: the best one [wins|counts].",
        ),
    ),
    topic(
        "sampling", "sampling", "sampl token random probabilit",
        what=(
            "Sampling draws the next token at random, [according to|following] the probabilities of the model.",
            "To sample means to [throw dice|draw lots] for the next token, with [loaded|unequal] probabilities.",
        ),
        how=(
            "Sampling computes a probability for each token and [lets|has] a random number [decide|choose].",
            "With a fixed seed the random numbers repeat, so sampling gives the same [tokens|probabilities and text].",
        ),
        why=(
            "Sampling gives [variety|new texts]: a random choice among tokens that are [all good|nearly equal].",
            "Sampling avoids [loops|dull text], because not always the token of highest probability [wins|is taken].",
        ),
        picture=(
            "Sampling is like a [lottery|wheel of fortune]: each token has a slice as wide as its probability.",
            "Think of sampling as [dice|a die] with a token on each side and unequal probabilities.",
        ),
        note=(
            "Top-k and top-p sampling [remove|cut off] the unlikely tokens first.",
            "In this program the target samples [every|each] token itself, so drafts do not change the "
            "[random|probability] "
            "law.",
        ),
    ),
    topic(
        "top_p", "top-p", "top-p token probabilit sampl",
        what=(
            "Top-p keeps the smallest set of tokens whose probabilities [reach|sum up to] p.",
            "Top-p is a [filter|limit] for sampling: [unlikely|rare] tokens are left out.",
        ),
        how=(
            "Top-p sorts tokens by probability and [stops|cuts] where the sum [reaches|passes] p.",
            "With top-p at 0.9, sampling uses the [likeliest|best] tokens that make up 90 percent[ of the "
            "probability|].",
        ),
        why=(
            "Top-p helps because very unlikely tokens [spoil|derail] a text when sampling [picks|hits] them.",
            "Top-p adapts: few tokens [remain|stay] when the model is sure, many when [probabilities|the "
            "probabilities] are "
            "[flat|even].",
        ),
        picture=(
            "Top-p is like inviting the [best|likeliest] tokens to sampling until the room is p full.",
            "Think of top-p as a [sieve|filter]: tokens of tiny probability [fall|drop] through.",
        ),
        note=(
            "Top-p at 1 changes nothing: all tokens may be [sampled|used in sampling].",
            "Top-p and temperature [work|act] together in sampling: first temperature, then the cut by probability.",
        ),
    ),
    topic(
        "autoregressive", "autoregressive decoding", "autoregressive token one step",
        what=(
            "Autoregressive decoding writes one token at a time, [each|every one] based on all before.",
            "Autoregressive means that each new token [depends|builds] on the tokens [already written|of earlier "
            "steps].",
        ),
        how=(
            "An autoregressive model predicts one token, [appends|adds] it and [starts|runs] again.",
            "In each autoregressive step, [all|the] weights are read once to [get|make] a single token.",
        ),
        why=(
            "Autoregressive decoding is simple and exact, but slow: a [full|whole] step for every token.",
            "Autoregressive steps leave a GPU [idle|waiting], because one token is [little|not much] work.",
        ),
        picture=(
            "Autoregressive writing is like [threading|stringing] beads: one token after the other.",
            "Think of autoregressive decoding as [walking|a walk]: one token per step, no [jumps|leaps].",
        ),
        note=(
            "Speculative decoding [speeds up|helps] an autoregressive model, since one pass [checks|confirms] many "
            "tokens.",
            "Turn speculation off to see plain autoregressive decoding: one token per [step|round].",
        ),
    ),
    topic(
        "prefill", "the prefill", "prefill prompt token cache",
        what=(
            "The prefill is the first phase: the model reads the whole prompt and fills its cache.",
            "Prefill means that all prompt tokens are [processed|read] together, [before|ahead of] the first new one.",
        ),
        how=(
            "In the prefill the prompt goes through the model in [one pass|large pieces], and keys and values enter "
            "the "
            "cache.",
            "The prefill [ends|is done] when the last prompt token has [given|produced] the first new token.",
        ),
        why=(
            "The prefill decides how long you wait for the first token after a [long|large] prompt.",
            "The prefill is [efficient|quick] per token, because the prompt is known and can be read [at once|in "
            "parallel].",
        ),
        picture=(
            "The prefill is like reading the [question|exam sheet] before you write: the prompt first, then [token by "
            "token|"
            "the answer tokens].",
            "Think of the prefill as [loading|filling] a truck with the prompt before the first token [drives|sets] "
            "off.",
        ),
        note=(
            "If a new prompt begins like the last one, the cache is reused and the prefill is [shorter|faster].",
            "Time to first token is [mostly|mainly] the prefill of the prompt.",
        ),
    ),
)  # fmt: skip
