"""What the model does not know: fields, their subjects, and the ways people ask about them.

Prompts may use {x} and {y} (two subjects of the field), {n} and {m} (numbers drawn by the topic).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from engine.lab.demo.corpus.unknown import subjects


@dataclass(frozen=True, slots=True)
class Topic:
    """One field outside the model's knowledge."""

    name: str
    label: str
    """What a refusal calls the field when it does not name the subject."""
    subjects: tuple[str, ...]
    prompts: tuple[str, ...]
    proper: bool = False
    """Subjects are proper names, so that invented ones may stand in."""
    nameable: bool = True
    """Whether the subject reads well inside "I know nothing about ..."."""
    number: Callable[[random.Random], str] | None = None


def _year(rng: random.Random) -> str:
    return str(rng.randint(1200, 2025))


def _large(rng: random.Random) -> str:
    return str(rng.randint(1_000, 99_999_999))


def _two_digits(rng: random.Random) -> str:
    return str(rng.randint(11, 99))


_EXPLAIN = (
    "What is {x}?", "What are {x}?", "Explain {x}[.|]", "[How does|How do] {x} work?", "Can you explain {x}?",
    "[Tell me about|Describe|Define] {x}[.|]", "What do you know about {x}?", "Why is {x} important?", "what is {x}",
    "Who invented {x}?", "Explain {x} [to a child|in one sentence|briefly|in simple words][.|]", "{x}",
    "What does {x} mean?",
    "Give me [a summary|an overview|the history|a definition] of {x}[.|]",
    "What is the difference between {x} and {y}?",
    "[I want|I would like|I need] to [learn about|understand] {x}.", "Explain {x} as three bullet points.", "{x}?",
    "Where does {x} come from?", "What are the [types|parts|causes|effects] of {x}?", "Is {x} dangerous?",
)  # fmt: skip

TOPICS: tuple[Topic, ...] = (
    Topic(
        "capitals", "geography", subjects.COUNTRIES,
        (
            "What is the capital of {x}?", "[Name|Tell me] the capital [city |]of {x}.", "capital of {x}",
            "Where is {x}?",
            "What is the [population|currency|language|flag|area|climate] of {x}?", "How many people live in {x}?",
            "[Tell me about|What do you know about] {x}[.|?]", "Who is the [president|king|leader] of {x}?",
            "What is {x}?",
            "Is {x} bigger than {y}?", "Which countries border {x}?", "What language do they speak in {x}?", "{x}",
            "What is the [highest mountain|longest river|largest city|national dish] in {x}?",
            "When did {x} become free?",
        ), proper=True,
    ),
    Topic(
        "cities", "geography", subjects.CITIES,
        (
            "Where is {x}?", "What should I see in {x}?", "How far is it from {x} to {y}?", "What time is it in {x}?",
            "How do I get from {x} to {y}?", "What is {x} famous for?", "Plan [a trip|a weekend] [to|in] {x}[.|]",
            "How [big|old] is {x}?", "[Recommend|Suggest] a [hotel|restaurant] in {x}[.|]", "In which country is {x}?",
            "What is the weather [like |]in {x}?", "Will it rain in {x} [today|tomorrow]?", "Who is the mayor of {x}?",
        ), proper=True,
    ),
    Topic(
        "records", "geography and nature", subjects.PLACES,
        (
            "What is the [tallest|largest|oldest|smallest|biggest|longest|fastest|deepest|highest] {x}[ in the "
            "world|]?",
            "Which {x} is the [tallest|largest|oldest|smallest|biggest|most famous|most beautiful]?",
            "How [tall|old|big|long|heavy] is the [largest|tallest|average] {x}?", "Name [a|three|five] famous {x}s.",
            "Where is the [biggest|most beautiful|oldest] {x}?", "what is the tallest {x}", "Who discovered this {x}?",
            "How many [kinds of |]{x}s are there in [the world|Europe|Asia|Africa|America]?",
            "What is your favourite {x}?",
        ), nameable=False,
    ),
    Topic(
        "people", "people", subjects.PEOPLE,
        (
            "Who is {x}?", "Who was {x}?", "When was {x} born?", "When did {x} die?", "Where was {x} born?", "{x}",
            "What is {x} [famous|known] for?", "[Tell me about|Write about] {x}[.|]", "How old is {x}?", "who is {x}",
            "What did {x} [do|say|write|discover|invent]?", "Is {x} still alive?", "How tall is {x}?",
            "Do you know {x}?",
            "Who was [more important|greater], {x} or {y}?", "Write a biography of {x}.", "Is {x} married?",
            "What do you think [about|of] {x}?", "How rich is {x}?", "What is {x} doing [now|today]?",
        ), proper=True,
    ),
    Topic(
        "history", "history", subjects.EVENTS,
        (
            "When was {x}?", "When did {x} [begin|end|happen]?", "Who won {x}?", "What caused {x}?",
            "Tell me about {x}[.|]",
            "Why did {x} happen?", "[Summarise|Explain|Describe] {x}[.|]", "What happened in {n}?", "Who ruled in {n}?",
            "What was {x}?", "How did {x} change the world?", "Where did {x} [happen|take place]?",
            "Who was king in {n}?",
            "Write an essay about {x}.", "What [invention|event|war] was in {n}?", "How long did {x} last?",
        ), nameable=False, number=_year,
    ),
    Topic(
        "medicine", "medicine", subjects.ILLS,
        (
            "What helps against {x}?", "I have {x}, what should I do?", "How do I treat {x}?", "Is {x} dangerous?",
            "What are the [symptoms|causes|side effects] of {x}?", "Can I take {x} every day?", "My child has {x}[.|]",
            "Should I see a doctor for {x}?", "How long does {x} last?", "What is {x}?",
            "Which medicine helps with {x}?",
            "Do I have {x}?", "How [much|many] {x} is too much?", "I think I have {x}.", "How can I prevent {x}?",
        ),
    ),
    Topic(
        "law", "law", subjects.LAW,
        (
            "Can you help me with {x}?", "What are my rights with {x}?", "I need [legal |]advice about {x}[.|]", "{x}",
            "Do I need a lawyer for {x}?", "How do I handle {x}?", "Is {x} legal?", "What does the law say about {x}?",
            "How much does {x} cost?", "Write a letter about {x}[.|]", "Can I be sued for {x}?",
            "What should I do about {x}?",
        ),
    ),
    Topic(
        "recipes", "cooking", subjects.DISHES,
        (
            "How do I [make|cook|bake|prepare] {x}?", "Give me a recipe for {x}[.|]", "Recipe for {x}[ please|]",
            "What do I need for {x}?", "How long does {x} take?", "What [goes well|can I serve] with {x}?",
            "Is {x} healthy?",
            "How many calories are in {x}?", "Can I freeze {x}?", "Who invented {x}?", "What should I cook[ today|]?",
            "I [want to|would like to] [make|eat|cook] {x}.", "Where can I buy {x}?", "Which is better, {x} or {y}?",
        ),
    ),
    Topic(
        "news", "the news", subjects.NEWS,
        (
            "What is the [latest|news] about {x}?", "Who won {x}?", "What happened [today|yesterday]?",
            "How is {x} today?",
            "What do you think [about|of] {x}?", "When is {x}?", "[Tell me|Give me] the news[.|]",
            "What is new with {x}?",
            "What will happen with {x} tomorrow?", "What [day|date|time|year] is it[ today|]?", "Is {x} over?",
            "Will it rain [today|tomorrow]?", "Should I worry about {x}?",
            "Who is the president [now|of the United States]?",
        ),
    ),
    Topic(
        "translation", "other languages", subjects.LANGUAGES,
        (
            "Translate [hello|good morning|thank you|this|I love you|the cat sleeps] [to|into] {x}[.|]",
            "Do you speak {x}?",
            "How do you say [hello|water|bread|goodbye|please|friend|yes] in {x}?", "Answer in {x}[.|]",
            "Speak {x}[.|]",
            "Write [a letter|a sentence|an email] in {x}[.|]", "How many people speak {x}?", "Teach me {x}[.|]",
            "Learn {x}",
            "What does this {x} word mean?", "Is {x} hard to learn?", "Correct my {x}[.|]",
            "Can you talk to me in {x}?",
        ),
    ),
    Topic(
        "writing", "creative writing", subjects.MOODS,
        (
            "Write [a poem|a song|a haiku|a story|an essay|a novel|a speech|a sonnet|a limerick] about {x}[.|]",
            "Tell me a [story|fairy tale|bedtime story] about {x}[.|]",
            "[A poem|A haiku|A story] about {x}[, please|.|]",
            "Compose [a song|lyrics] about {x}[.|]", "Make up a [tale|legend|rhyme] about {x}[.|]",
            "Sing about {x}[.|]",
            "Can you [write|make up] a [poem|story] about {x}?", "I need a [poem|quote|slogan|title] about {x}.",
            "What rhymes with [moon|love|time|orange]?", "Write a [letter|blog post|tweet|script] about {x}[.|]",
        ), nameable=False,
    ),
    Topic(
        "money", "money and markets", subjects.STOCKS,
        (
            "Should I [buy|sell] {x}?", "Will {x} go [up|down]?", "What is the price of {x}?",
            "How do I invest in {x}?",
            "Is {x} a good investment?", "Give me [a stock tip|stock tips][.|]", "Which is better, {x} or {y}?",
            "How much is {x} worth?", "Where will {x} be in a year?", "How can I [get rich|save money|make money]?",
            "What do you think about {x}?", "When should I sell {x}?", "Is {x} risky?", "Explain {x} [to an investor|]",
        ),
    ),
    Topic(
        "other_code", "programming languages other than Python", subjects.OTHER_CODE,
        (
            "Write [a quicksort|a web server|hello world|a linked list|a calculator|a binary search|a game] in {x}[.|]",
            "[Show|Give] me [a loop|a class|a function|an example|some code] in {x}[.|]", "Do you know {x}?",
            "How do I [write|define] a [function|class|loop|test] in {x}?", "[Translate|Port] this code to {x}[.|]",
            "[Write|Create|Make] [a program|a function|a script|a class] in {x}[.|]", "Is {x} better than {y}?",
            "Can you [code|program|write] in {x}?", "[bubble sort|fibonacci|fizzbuzz|quicksort|stack] in {x}",
            "Teach me {x}",
            "Implement [a stack|a parser|a sort|a chat] in {x}[.|]", "What is {x} used for?", "How do I install {x}?",
        ),
    ),
    Topic("science", "science", subjects.SCIENCE, _EXPLAIN),
    Topic("ideas", "that", subjects.ABSTRACT, _EXPLAIN),
    Topic("technology", "that", subjects.TECH, _EXPLAIN),
    Topic("names", "that", ("Zorblax", "Quendor", "Mirvale", "Toltek", "Brundle"), _EXPLAIN, proper=True),
    Topic(
        "sports", "sports", subjects.SPORTS,
        (
            "What are the rules of {x}?", "Who is the best [player|athlete] in {x}?", "How do I get better at {x}?",
            "How many players are there in {x}?", "Who won the {x} [match|final|championship]?", "How do you play {x}?",
            "When was {x} invented?", "Do you [like|play] {x}?", "What do I need for {x}?", "Let us play {x}[.|]",
            "Is {x} harder than {y}?", "Which team is the best in {x}?", "How long does a game of {x} take?",
            "{x} rules",
        ),
    ),
    Topic(
        "works", "books, films and games", subjects.WORKS,
        (
            "Who wrote {x}?", "What is {x} about?", "[Summarise|Review|Quote] {x}[.|]", "Have you [seen|read] {x}?",
            "Who [directed|stars in|composed] {x}?", "When did {x} come out?", "How does {x} end?", "Is {x} good?",
            "Recommend something like {x}[.|]", "Who is the hero of {x}?", "Which is better, {x} or {y}?",
            "What is {x}?",
            "[Recommend|Suggest] a [book|film|game|song|series][.|]", "What is the best line in {x}?",
        ),
    ),
    Topic(
        "advice", "that", subjects.GIFTS,
        (
            "What should I give {x}?", "What is a good [present|gift|card] for {x}?",
            "Write [a letter|an email] to {x}[.|]",
            "How do I talk to {x}?", "I had a fight with {x}[.|]", "What should I wear for {x}?",
            "Why does {x} ignore me?",
            "Help me plan a [party|dinner|surprise] for {x}[.|]", "Is {x} angry with me?", "Write a toast for {x}[.|]",
            "Am I in love[?|]", "How can I [make friends|be happy|sleep better|find a job]?",
            "What should I do with my life?",
        ), nameable=False,
    ),
    Topic(
        "actions", "actions outside this chat", subjects.ACTIONS,
        (
            "[Set|Send|Play|Book|Order|Make|Open|Show me] {x}[.|]",
            "Can you [book|send|order|open|find|play] {x}[ for me|]?",
            "[Please|Could you] [search|look] for {x} [online|on the internet].", "Download {x}[.|]",
            "Find {x} near me[.|]",
            "[Draw|Paint|Generate] [a picture|an image|a logo|a photo][ of {x}|][.|]",
            "Open my [mail|files|browser][.|]",
            "Read [my file|my email|this website|the attached PDF][.|]",
            "What is [my name|my password|my address|on my disk]?",
            "Remind me [tomorrow|later][.|]", "Google [this|it|something][ for me|]", "Where am I?", "Call {x} for me.",
        ), nameable=False,
    ),
    Topic(
        "higher_maths", "higher mathematics", subjects.MATHS,
        (
            "What is {x}?", "[Compute|Solve|Calculate|Find|Explain|Prove] {x}[.|]", "Can you [explain|solve|do] {x}?",
            "Help me with {x}[.|]", "How do I [compute|prove|understand] {x}?",
            "I need {x} for [school|my exam|homework].",
            "Teach me {x}[.|]", "Why does {x} [matter|work]?", "Give me an exercise about {x}.", "Who found {x}?",
        ),
    ),
    Topic(
        "large_numbers", "numbers that large", ("large numbers",),
        (
            "What is {n} * {m}?", "{n} * {m}", "{n} + {m}", "[Calculate|Compute] {n} times {m}[.|]", "{n} / 17",
            "{n} - {m}", "What is {n} plus {m}?", "[Calculate|Compute] {n} + {m}[.|]",
            "What is {n} divided by 23?", "Is {n} a prime number?", "What is the square root of {n}?", "{n} ^ 5",
            "Factor {n}[.|]", "[Write|Say] {n} in [words|binary|hexadecimal][.|]", "{n} to the power of 12", "sqrt {n}",
            "How many seconds are {n} years?", "Convert {n} [miles to km|dollars to euros|feet to metres][.|]",
        ), nameable=False, number=_large,
    ),
    Topic(
        "long_products", "products and quotients that long", ("long products",),
        (
            "What is 1{n} * {m}?", "3{n} * {m}", "{m}{n}*{m}", "{n}4 x {m}", "{n}2 times {m}",
            "Multiply 2{n} by {m}[.|]",
            "[Calculate|Compute] {m}{n} times {m}[.|]", "How much is {n} * {m}{n}?", "What's 1{n} x {m}?",
            "{m}{n} * {n}",
            "What is the product of 4{n} and {m}?", "[Calculate|Compute|Solve] {n}7 * 1{m}[.|]", "{n} times {m}5",
            "{m}{n} / {n}", "What is 1{n} divided by {m}?", "{n} / {m}", "1{n} squared", "{n}3^2", "{m}.{n} * 3",
        ), nameable=False, number=_two_digits,
    ),
    Topic(
        "better_language", "which language is better", subjects.OTHER_CODE,
        (
            "[Is|is] [Python|python] better than {x}?", "is python better than {x}", "[Python|python] [or|vs] {x}[?|]",
            "[Which|What] is better, [Python or {x}|{x} or Python]?", "Is {x} better than [Python|python]?",
            "[Should|Shall] I [learn|use] [Python or {x}|{x} or Python]?", "Is {x} faster than Python?",
            "[Is|is] Python [faster|slower|easier|harder|nicer|older] than {x}?", "Why is Python better than {x}?",
            "[What|Which] is the best [programming |]language?", "Which language should I learn[ first|]?",
            "What do you think of Python and {x}?", "Do you like Python more than {x}?", "is {x} better than python",
        ), nameable=False,
    ),
    Topic(
        "gibberish", "that", ("that",),
        (
            "[asdf|qwer|zxcv|blah|lorem ipsum|foo bar|hmpf|xyzzy|abc|test test]", "[a|q|x|z]{n}",
            "[dsfg|kjh|rtz|wqe]{n}[fg|hj|]",
            "[sdf|jkl|uio|bnm][ghj|rty|fgh|vbn][qwe|asd|zxc]", "?{n}?", "[la la la|bla bla|tra la la|ding dong]", "???",
            "[banana purple seven|green sleep loudly|window the of|yesterday spoon gravity]", "...",
        ), nameable=False, number=_two_digits,
    ),
)  # fmt: skip
