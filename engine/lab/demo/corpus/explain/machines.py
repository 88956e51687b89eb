"""The machine under the model: what decides how fast tokens come."""

from __future__ import annotations

from engine.lab.demo.corpus.explain.topic import Topic, topic

MACHINES: tuple[Topic, ...] = (
    topic(
        "gpu", "a GPU", "gpu parallel number memory",
        what=(
            "A GPU is a processor that does [thousands of|very many] small calculations with numbers in parallel.",
            "A GPU is a chip for parallel work, [first made|born] for graphics, with [its own|very] fast memory.",
        ),
        how=(
            "A GPU runs the same [step|instruction] on many numbers in parallel, [with|using] thousands of threads.",
            "A GPU [loads|reads] numbers from its memory, and [all|hundreds of] small cores compute at once.",
        ),
        why=(
            "A GPU suits language models, because they [multiply|are made of] large tables of numbers in parallel.",
            "Training on a GPU takes minutes [where|when] a CPU [needs|takes] hours, thanks to parallel work.",
        ),
        picture=(
            "A GPU is like [a thousand|many] pupils doing sums in parallel; a CPU is like [one|a single] professor.",
            "Think of a GPU as a [wide|broad] road for numbers: many [cars|lanes] in parallel, none very fast.",
        ),
        note=(
            "When a model writes one token, the GPU [mostly waits|spends its time] on memory, not on numbers.",
            "This demo also runs without a GPU, because its numbers fit in [little|small] memory.",
        ),
    ),
    topic(
        "memory_bandwidth", "memory bandwidth", "memory bandwidth second token",
        what=(
            "Memory bandwidth is the amount of data that memory can [deliver|move] per second.",
            "Bandwidth [says|tells] how many bytes per second [travel|flow] between memory and processor.",
        ),
        how=(
            "For each token the weights [travel|are read] from memory, so bandwidth [limits|sets] the tokens per "
            "second.",
            "Divide the memory bandwidth by the bytes read per token: that is the [highest|best] speed.",
        ),
        why=(
            "Memory bandwidth matters because a token needs [little arithmetic|few sums] but [many|a lot of] bytes.",
            "More bandwidth means more tokens per second, [even if|although] the [cores|sums] are no faster.",
        ),
        picture=(
            "Memory bandwidth is like the [width|size] of a pipe: wider lets more water through per second.",
            "Think of bandwidth as the [door|gate] of a memory store: [how many|the] boxes that pass per second.",
        ),
        note=(
            "An H200 GPU [reads|moves] about 4.3 terabytes per second in practice, a laptop's memory bandwidth is "
            "[far|much] "
            "lower.",
            "Speculative decoding [saves|spares] bandwidth: one read of memory serves several tokens.",
        ),
    ),
    topic(
        "throughput", "the speed in tokens per second", "token second speed time",
        what=(
            "Tokens per second [says|tells] how fast a model writes: its speed.",
            "Tokens per second is the number of new tokens divided by the time [taken|they took].",
        ),
        how=(
            "Count the tokens of an answer, [measure|take] the time and divide: that is the speed.",
            "The speed in tokens per second is the acceptance length divided by the [time|duration] of a round.",
        ),
        why=(
            "Tokens per second decide how [long|much time] you wait for an answer, so a higher speed [feels better|is "
            "nice].",
            "The speed in tokens per second lets you compare [programs|settings] on the same [machine|computer].",
        ),
        picture=(
            "Tokens per second are like [km per hour|a speedometer] for a model: the speed of its writing.",
            "Think of a [typist|pianist]: tokens per second is the speed of the [fingers|keys].",
        ),
        note=(
            "The time to the first token is measured apart, since speed [counts|starts] only after it.",
            "The speed varies: code gives more tokens per second than [chat|small talk], because its drafts are "
            "[better|"
            "accepted more].",
        ),
    ),
    topic(
        "cpu", "a CPU", "cpu instruction program computer",
        what=(
            "The CPU is the main processor of a computer: it [runs|executes] the instructions of programs.",
            "A CPU is a chip that [carries out|follows] one instruction after [another|the other] of a program.",
        ),
        how=(
            "A CPU fetches an instruction, [decodes|reads] it, executes it and [goes on|moves] to the next in the "
            "program.",
            "The CPU of a computer has a few [strong|fast] cores, and each one runs its own [program|instructions].",
        ),
        why=(
            "A CPU is [flexible|versatile]: it can run any program, [even|also] one full of decisions.",
            "Every computer needs a CPU to [run|start] the operating system and [all|other] programs.",
        ),
        picture=(
            "A CPU is like a [cook|chef] who follows a recipe, instruction by instruction.",
            "Think of the CPU as the [conductor|driver] of a computer: it says what [happens|comes] next.",
        ),
        note=(
            "This demo runs on two CPU cores of any [recent|normal] computer.",
            "A CPU reaches billions of [steps|instructions] per second, [yet|but] a program often waits for memory.",
        ),
    ),
    topic(
        "thread", "a thread", "thread program run same",
        what=(
            "A thread is a [line|strand] of work in a program that runs beside others.",
            "Threads let one program [do|run] several things at the same time.",
        ),
        how=(
            "Each thread [runs|executes] its own steps, but all threads of a program share the same memory.",
            "The system [switches|jumps] between threads, so that all of them [run|make progress] on the same cores.",
        ),
        why=(
            "A thread keeps a program [responsive|alive]: one runs the [work|model], another the screen.",
            "Threads help when a program must wait: [another|one more] thread can run [meanwhile|in that time].",
        ),
        picture=(
            "Threads are like cooks in the same kitchen: each runs [a|its own] recipe.",
            "Think of a program as a rope: each thread runs [through|along] it, and together they are [strong|one].",
        ),
        note=(
            "Two threads that [change|write] the same data must [take turns|use a lock], or the program breaks.",
            "In this program one thread runs the model and another [draws|paints] the screen.",
        ),
    ),
    topic(
        "floating_point", "a floating point number", "float number precision bit",
        what=(
            "A floating point number [stores|keeps] digits and an exponent in a fixed number of bits.",
            "Floating point is the [usual|common] way to store [fractions|real numbers] in bits, with limited "
            "precision.",
        ),
        how=(
            "A float has a sign, an exponent and [some|a few] bits for the digits of the number.",
            "The exponent [moves|shifts] the point, so a float can be a [tiny|very small] or a huge number.",
        ),
        why=(
            "Floats with fewer bits save memory and time, but the precision of each number [drops|suffers].",
            "Floating point numbers cover a [wide|huge] range with [only|just] 16 or 32 bits.",
        ),
        picture=(
            "A floating point number is like [scientific notation|writing 1.5 million]: some digits of precision and a "
            "scale.",
            "Think of a float as a ruler whose marks are [closer|finer] near zero: precision depends on the number.",
        ),
        note=(
            "The number 0.1 has no exact float, [so|hence] 0.1 + 0.2 shows a small precision error.",
            "Models often use bf16: a float of 16 bits with a [large|wide] range and [little|low] precision.",
        ),
    ),
    topic(
        "cache", "a cache", "cache fast memory again",
        what=(
            "A cache is a [small|little] fast memory for things that are needed again.",
            "A cache keeps [results|copies] near, so that they need not be [computed|fetched] again.",
        ),
        how=(
            "A program looks in the cache first; if the value is [missing|not there], it gets it and [stores|keeps] "
            "it for "
            "again.",
            "When a cache is full, an old entry [leaves|is thrown out] to make memory for a new one.",
        ),
        why=(
            "A cache is useful because [programs|people] ask for the same things again and again.",
            "With a cache, slow work is done once and fast [look-ups|reads] do the rest.",
        ),
        picture=(
            "A cache is like a [fridge|cupboard]: you do not go to the shop again for [each|every] egg.",
            "Think of a cache as [notes|a notepad] on your desk: fast to [reach|read], though the memory is small.",
        ),
        note=(
            "A stale cache gives old [values|answers], so it must be cleared and filled again when data [changes|is "
            "new].",
            "In Python, functools has a decorator named cache that [remembers|stores] results, which makes functions "
            "fast.",
        ),
    ),
)  # fmt: skip
