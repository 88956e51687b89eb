"""Language models: the parts of the target."""

from __future__ import annotations

from engine.lab.demo.corpus.explain.topic import Topic, topic

MODELS: tuple[Topic, ...] = (
    topic(
        "language_model", "a language model", "model text token predict",
        what=(
            "A language model is a program that predicts the next token of a text[, again and again|].",
            "A language model [assigns|gives] a probability to every token that could [continue|follow] a text.",
        ),
        how=(
            "A language model turns text into tokens, computes [scores|a score] for each possible next token and "
            "[picks|"
            "chooses] one.",
            "The model [writes|adds] one token, reads the longer text and predicts [again|the next one].",
        ),
        why=(
            "Predicting text well [needs|takes] some knowledge of it, which is why language models [can answer|are "
            "useful].",
            "A language model is useful because [many|most] tasks can be written as text to [continue|predict].",
        ),
        picture=(
            "A language model is like the word suggestions [on a phone|of a phone], but it predicts a whole text.",
            "Think of a model as a [reader|listener] who has seen much text and [guesses|predicts] how yours goes on.",
        ),
        note=(
            "A language model can be wrong: [likely|fluent] text is not always [true|correct].",
            "A small model like this one [knows|has seen] little text, so ask it only about its [topics|own topics].",
        ),
    ),
    topic(
        "token", "a token", "token text word model",
        what=(
            "A token is a [piece|bit] of text: a word, a part of a word, a digit or a sign.",
            "Tokens are the [units|pieces] in which a model reads and writes text.",
        ),
        how=(
            "A tokenizer cuts text into tokens and gives each one a number that the model [can use|understands].",
            "Common words become one token, [rare|unusual] words are [split|cut] into several.",
        ),
        why=(
            "Tokens let a model handle any text with a [fixed|limited] list of [pieces|parts].",
            "The number of tokens decides how long a model [works|needs], since it writes text token by token.",
        ),
        picture=(
            "Tokens are like [bricks|blocks]: a model builds every text from the same [box|set].",
            "Think of a token as a [stamp|tile] with a word or part of a word on it.",
        ),
        note=(
            "In this model every digit is its own token, and [common|frequent] words are whole.",
            "Speed is [measured|given] in tokens per second: a token is often [shorter than|only part of] a word.",
        ),
    ),
    topic(
        "tokenizer", "a tokenizer", "tokenizer text token number",
        what=(
            "A tokenizer [cuts|splits] text into tokens and turns each token into a number.",
            "A tokenizer is the [translator|bridge] between text and the numbers a model works with.",
        ),
        how=(
            "The tokenizer starts from [bytes|letters] and joins [frequent|common] pairs, until the text is covered "
            "with "
            "known tokens.",
            "A tokenizer [looks up|finds] the longest merges it learnt and [writes|returns] one number per token.",
        ),
        why=(
            "A tokenizer keeps text short: [fewer|less] tokens mean less work per [sentence|answer].",
            "Models compute with numbers, so a tokenizer must turn text into [numbers|tokens] and back.",
        ),
        picture=(
            "A tokenizer is like a [cook|kitchen knife]: it cuts the text into token sized [pieces|bites].",
            "Think of a tokenizer as a [dictionary|phrase book] from text pieces to [numbers|token numbers].",
        ),
        note=(
            "The tokenizer of this demo knows 4096 tokens; [that|this] of the real Gemma 4 has a number of 262144.",
            "A tokenizer loses nothing: tokens can be [turned|put] back into the [same|exact] text.",
        ),
    ),
    topic(
        "transformer", "a transformer", "transformer layer attention token",
        what=(
            "A transformer is a neural network [built|made] from layers of attention and small [networks|feed forward "
            "nets].",
            "A transformer is the [design|architecture] behind [most|nearly all] language models: a stack of attention "
            "layers.",
        ),
        how=(
            "Each transformer layer lets tokens [exchange|share] information by attention, then [changes|processes] "
            "every "
            "token alone.",
            "In a transformer, tokens become vectors, pass through [many|all] layers and end as scores for the next "
            "token.",
        ),
        why=(
            "Transformers train fast, because a layer handles all tokens of a text [in parallel|at the same time].",
            "A transformer is strong because attention lets [any|each] token look at any [earlier|other] one.",
        ),
        picture=(
            "A transformer is like a [meeting|round table]: in each layer the tokens [listen to|hear] each other, "
            "then think.",
            "Think of a transformer as a tower: on every [floor|layer] the tokens [learn|understand] more.",
        ),
        note=(
            "The tiny transformer of this demo has 8 layers; [large|big] ones have 30 to [60|more than 60] layers.",
            "Transformer layers add their result to [a running sum|the stream] for each token, which keeps training "
            "[stable|"
            "calm].",
        ),
    ),
    topic(
        "attention", "attention", "attention token value key",
        what=(
            "Attention lets each token [look at|gather information from] the earlier tokens that matter to it.",
            "Attention is a weighted [mean|average] of values, with weights that [say|tell] which tokens matter.",
        ),
        how=(
            "In attention a token's query is compared with the keys of [other|earlier] tokens, and the [best|closest] "
            "matches give their values.",
            "Attention multiplies query and key, [applies|takes] a softmax and [sums up|mixes] the values.",
        ),
        why=(
            "Attention is useful because [words|tokens] far apart can [inform|influence] each other: a token finds its "
            "context by keys.",
            "Without attention, [a|each] token would know nothing of the [others|text before it].",
        ),
        picture=(
            "Attention is like [asking around|searching] in a library: the query meets keys and [brings back|returns] "
            "values.",
            "Think of attention as a [spotlight|torch] that each token points at the [words|tokens] it needs.",
        ),
        note=(
            "Attention gets [slower|more costly] as the text grows, since a token meets the keys of all "
            "[earlier|previous] "
            "ones.",
            "Several heads share the work of attention, so a token can [follow|ask for] different [things|values] at "
            "once.",
        ),
    ),
    topic(
        "sliding_window", "a sliding window", "window token attention layer",
        what=(
            "A sliding window limits attention to the [latest|nearest] tokens, [for example|say] the last 1024.",
            "In a sliding window layer each token [sees|looks at] only a fixed number of tokens [before|behind] it.",
        ),
        how=(
            "The window moves along with the text: each new token [enters|comes in] and the oldest one [leaves|drops "
            "out].",
            "A sliding window layer keeps its keys in a ring, where a new token [overwrites|replaces] the oldest.",
        ),
        why=(
            "A sliding window saves memory and time: attention costs the same [however long|no matter how long] the "
            "text "
            "gets.",
            "Most layers need only [near|nearby] tokens, so a window is [enough|all they need].",
        ),
        picture=(
            "A sliding window is like reading through a [slot|frame] that moves over the tokens.",
            "Think of looking out of a train window: the [newest|next] tokens come, the old ones [pass by|vanish].",
        ),
        note=(
            "Gemma 4 [mixes|combines] sliding window layers with some full attention layers[ that see everything|].",
            "In this demo the window is 256 tokens, so a long page [rolls over|exceeds] it in the sliding layers.",
        ),
    ),
    topic(
        "mixture_of_experts", "a mixture of experts", "expert mixture token router",
        what=(
            "A mixture of experts has many small networks, and a router [sends|leads] each token to a few of them.",
            "In a mixture of experts only [some|a few] experts work on each token.",
        ),
        how=(
            "For each token the router [scores|rates] all experts, runs the best [ones|few] and [adds up|mixes] their "
            "results.",
            "A mixture of experts [weighs|sums] the outputs of the experts that the router [chose|picked].",
        ),
        why=(
            "A mixture of experts [holds|stores] much knowledge but computes little, as few experts run per token.",
            "With a mixture of experts a model can be large and still [fast|quick] for a single token.",
        ),
        picture=(
            "A mixture of experts is like a [hospital|clinic]: the router sends each [patient|token] to the right "
            "doctors.",
            "Think of experts in [an office|a workshop]: each token goes only to the [two|few] who know it.",
        ),
        note=(
            "On a mixture of experts verifying more tokens costs more, since [different|other] tokens need other "
            "experts.",
            "The real Gemma 4 26B has 128 experts and uses 8 per token; this demo has 8 experts and uses 2 of the "
            "[mixture|"
            "eight].",
        ),
    ),
    topic(
        "router", "a router in a mixture of experts", "router expert token score",
        what=(
            "The router [decides|chooses] which experts work on a token.",
            "A router is a small [layer|matrix] that gives every expert a score for [each|the] token.",
        ),
        how=(
            "The router computes a score per expert, takes a softmax and [keeps|picks] the top [few|ones].",
            "The router [multiplies|weighs] each chosen expert's output by its score.",
        ),
        why=(
            "The router saves work: experts with a low score [are skipped|do not run at all].",
            "A good router [spreads|shares] tokens over all experts, so that none is [idle|overloaded].",
        ),
        picture=(
            "The router is like a [receptionist|switchboard]: it sends each token to the right expert.",
            "Think of a router as a [sorting|post] office that reads a token and [finds|knows] the expert.",
        ),
        note=(
            "Router scores should be computed in [full|high] precision, or near ties [pick|choose] another expert.",
            "While training, a balance loss [pushes|nudges] the router to use every expert for some tokens.",
        ),
    ),
    topic(
        "kv_cache", "the KV cache", "cache key value token",
        what=(
            "The KV cache [stores|keeps] the attention keys and values of [all|the] tokens read so far.",
            "A KV cache is the [memory|notebook] of a model: keys and values that need not be computed again.",
        ),
        how=(
            "Each new token adds its key and value to the cache and [reads|looks at] those of the earlier ones.",
            "When a draft is rejected, the cache is [rolled|cut] back so that its keys and values [vanish|are gone].",
        ),
        why=(
            "Without a cache the model would [read|process] the whole text again for [every|each] token.",
            "The cache makes each step cheap: only the new token's key and value are [computed|calculated].",
        ),
        picture=(
            "The KV cache is like [notes|bookmarks]: keys [say|tell] where to look, values what was there.",
            "Think of a cache as a [drawer|shelf]: each token leaves a key and a value in it.",
        ),
        note=(
            "The cache grows with every token, which is why long chats need [more|much] memory for keys and values.",
            "Sliding window layers keep a [short|small] cache, because old tokens [drop out|are forgotten].",
        ),
    ),
    topic(
        "embedding", "an embedding", "embedding token vector mean",
        what=(
            "An embedding is a vector of numbers that stands for [the meaning of |]a token.",
            "Embeddings turn each token into a [list of numbers|point in space], a vector.",
        ),
        how=(
            "The model looks up a [row|line] of a table: the row of a token is its embedding vector.",
            "While training, embedding vectors [move|shift] until tokens of similar meaning [are near|lie close "
            "together].",
        ),
        why=(
            "Embeddings are needed because a network computes with vectors, not with [token names|tokens].",
            "With an embedding, a token with [similar|related] meaning gets a similar [treatment|vector].",
        ),
        picture=(
            "An embedding is like [an address|coordinates] on a map of meanings: near tokens are [alike|related].",
            "Think of an embedding as a [recipe|fingerprint] of a token, written as a vector.",
        ),
        note=(
            "In Gemma the embedding table is used twice: to read tokens and to [score|predict] them [as vectors|from a "
            "vector].",
            "The drafter has no embedding of its own and [borrows|shares] the token vectors of the target.",
        ),
    ),
    topic(
        "parameter", "a parameter of a model", "parameter model number train",
        what=(
            "A parameter is a number inside a model that is [learnt|set] by training.",
            "Parameters, or weights, are the numbers that [make up|define] a model.",
        ),
        how=(
            "Training [changes|adjusts] each parameter a little whenever the model predicts [badly|something wrong].",
            "A parameter [multiplies|scales] some input; [millions|many] of such numbers form the model.",
        ),
        why=(
            "More parameters let a model [store|learn] more, but they must all be [read|loaded] to train and run it.",
            "The number of parameters [decides|tells] how much memory a model needs.",
        ),
        picture=(
            "A parameter is like a [knob|dial]: training turns [millions|all] of them until the model sounds right.",
            "Think of parameters as [screws|strings] of a piano: training tunes the model with them.",
        ),
        note=(
            "This demo model has about 7.6 million parameters; the real Gemma 4 26B has 25 [thousand million|billion].",
            "In a mixture of experts only some parameters of the model [work|are used] on each token, a small "
            "[number|part].",
        ),
    ),
    topic(
        "training", "the training of a model", "train model text error",
        what=(
            "Training is how a model learns: it predicts text and [adjusts|changes] its weights after each error.",
            "To train a model means to [show|give] it examples until its error is small.",
        ),
        how=(
            "In training the model guesses the next token, the error is [measured|computed] and every weight "
            "[moves|shifts] "
            "a bit against it.",
            "Training [repeats|loops over] three steps: predict text, measure the error, [update|correct] the weights.",
        ),
        why=(
            "Training is needed because a fresh model [writes|produces] only random text.",
            "Good training data matters: a model can only [repeat|learn] what its training text [shows|contains].",
        ),
        picture=(
            "Training is like [practising|learning] the piano: the model plays, hears the error and [tries|plays] "
            "again.",
            "Think of training as [climbing down|walking down] a hill of errors, one small step of the model at a "
            "time.",
        ),
        note=(
            "This demo model was trained in minutes on text made by a [program|script].",
            "A model trained too long on [little|few] text learns it by heart, [which|a fault that] is called "
            "overfitting.",
        ),
    ),
    topic(
        "context", "the context window", "context window token model",
        what=(
            "The context window is the number of tokens that a model can [see|take in] at once.",
            "The context is everything a model [reads|has in view]: [prompt, chat|question, history] and the tokens "
            "written "
            "so far.",
        ),
        how=(
            "Every new token makes the context longer, until the window of the model is [full|used up].",
            "A model [finds|keeps] its context in the cache: keys and values of each token in the window.",
        ),
        why=(
            "The context window matters: what is outside, the model [cannot know|has forgotten].",
            "A longer context costs [memory|time], since each token is compared with [more|many] others in the window.",
        ),
        picture=(
            "The context window is like a [desk|table]: the model can use only the [pages|tokens] that fit on it.",
            "Think of context as short term memory: a [small|tight] window [loses|drops] early tokens.",
        ),
        note=(
            "This demo model works best with a short context; its window is [far|much] smaller than [Gemma's|the real "
            "one].",
            "When a chat exceeds the context window, old tokens must [go|be dropped].",
        ),
    ),
    topic(
        "position_encoding", "a rotary position encoding", "position rotat token angle",
        what=(
            "A rotary position encoding tells a model where a token stands by rotating its [query and key|vectors].",
            "Rotary encoding [turns|rotates] vectors by an angle that [grows|increases] with the position.",
        ),
        how=(
            "Each pair of numbers is rotated by an angle: position times a [frequency|speed], for every token.",
            "After rotating, the product of query and key depends on the [difference|distance] of the two positions.",
        ),
        why=(
            "Without a position encoding a [model|transformer] could not tell the order of tokens, so [it needs|we "
            "use] "
            "rotations.",
            "Rotation is [elegant|handy] because only the [relative|mutual] position of two tokens matters.",
        ),
        picture=(
            "Rotary position encoding is like [clock hands|the hands of a clock]: the angle [shows|tells] the "
            "position.",
            "Think of each token as a dancer who [turns|rotates] a little more at every position.",
        ),
        note=(
            "In full layers of Gemma 4 only a quarter of each head is rotated with the position; the rest "
            "[stays|remains] "
            "as it is.",
            "Slow angles help far positions, fast angles [help|serve] near [ones|tokens].",
        ),
    ),
)  # fmt: skip
