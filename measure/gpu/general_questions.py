"""Makes questions that people ask a small chat model; SmolLM2's drafter learns from its target's answers to them.

Half a million can be made, so that no answer need come twice: a form and a topic, perhaps said for somebody or at a
length; two topics; small talk; programs. None is about a topic of the questions with which the drafter is measured
(``measure.engine.acceptance``)."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

FORMS = """What is {}?
What are the main benefits of {}?
How does {} work?
Explain {} in simple terms.
Explain {} in one paragraph.
Tell me about {}.
Who invented {}?
What is the history of {}?
Why is {} important?
Why does {} matter?
Is {} good for you?
What do you know about {}?
What should a beginner know about {}?
How do I get started with {}?
Give me five tips for {}.
Give me three reasons to learn about {}.
List ten facts about {}.
List some advantages and disadvantages of {}.
Name three things that have to do with {}.
What are common mistakes with {}?
What are some popular kinds of {}?
How has {} changed over time?
What will {} look like in the future?
Can you describe {} to a ten-year-old?
Describe {} in two sentences.
Describe {} without using the word itself.
Summarize what {} is about.
Define {}.
Give me an example of {}.
Write a short story about {}.
Write a short paragraph about {}.
Write a haiku about {}.
Write a poem about {}.
Write a joke about {}.
Write a slogan for {}.
Write an email to a colleague about {}.
Write a letter to a friend about {}.
Write a dialogue between two people about {}.
Write a blog post about {}.
Write an introduction to an essay on {}.
Write a quiz question about {}.
Make a plan to learn more about {}.
Make a shopping list for {}.
What questions should I ask about {}?
What is your favourite thing about {}?
What is the difference between {} and something similar?
How much does {} cost?
Where can I learn about {}?
When was {} first used?
How can I teach my children about {}?
How is {} made?
What would the world be like without {}?
Do you like {}?
Help me understand {}.
Help me write a speech about {}.
I am worried about {}. What should I do?
I know nothing about {}. Where do I start?
Create a Python class about {}.
Write a Python program that has to do with {}.
Translate the words for {} into French.""".splitlines()

TOPICS = (
    """the sun; Mars; Jupiter; black holes; stars; comets; the Milky Way; telescopes; satellites; rockets; space
travel; astronauts; the weather; snow; clouds; thunderstorms; tornadoes; earthquakes; volcanoes; rivers; lakes;
mountains; deserts; forests; rainforests; islands; glaciers; climate change; recycling; renewable energy; solar
panels; wind power; nuclear power; oil; coal; electricity; magnets; batteries; light bulbs; radio; television;
telephones; smartphones; computers; the internet; email; social media; video games; robots; artificial
intelligence; machine learning; programming; Python; JavaScript; databases; encryption; passwords; computer
viruses; open source; spreadsheets; algorithms; recursion; binary search; linked lists; hash tables; loops;
variables; functions; unit tests; version control; web design; HTML; cloud computing; virtual reality;
self-driving cars; drones; 3D printing; cars; trucks; buses; subways; airplanes; helicopters; ships; submarines;
bridges; tunnels; skyscrapers; houses; furniture; windows; doors; gardens; flowers; roses; trees; oak trees;
bamboo; mushrooms; grass; bees; butterflies; ants; spiders; mosquitoes; dogs; horses; cows; pigs; chickens;
ducks; eagles; owls; penguins; parrots; lions; tigers; elephants; giraffes; monkeys; bears; wolves; foxes;
rabbits; mice; bats; whales; dolphins; sharks; octopuses; salmon; frogs; snakes; turtles; crocodiles; dinosaurs;
evolution; DNA; cells; bacteria; viruses; vaccines; antibiotics; the human heart; the brain; the lungs; muscles;
bones; skin; eyes; sleep; dreams; memory; emotions; stress; anxiety; happiness; friendship; love; family;
marriage; children; parents; grandparents; school; university; homework; exams; teachers; reading; writing;
spelling; grammar; poetry; novels; fairy tales; newspapers; theatre; movies; cartoons; photography; painting;
sculpture; drawing; architecture; museums; the piano; the guitar; the violin; drums; jazz; rock and roll; opera;
singing; dancing; ballet; sports; football; basketball; baseball; tennis; golf; swimming; running; cycling;
hiking; skiing; surfing; yoga; meditation; weight lifting; the Olympic Games; chess openings; card games;
puzzles; crosswords; magic tricks; juggling; cooking; baking; pizza; pasta; rice; soup; salad; cheese;
chocolate; ice cream; cake; apples; bananas; oranges; strawberries; tomatoes; potatoes; carrots; onions; garlic;
salt; sugar; honey; olive oil; tea; milk; juice; water; wine; beer; breakfast; lunch; dinner; vegetarian food;
healthy eating; vitamins; protein; losing weight; first aid; hospitals; doctors; nurses; dentists; medicine;
glasses; money; banks; saving money; budgets; taxes; inflation; the stock market; investing; insurance;
mortgages; credit cards; cryptocurrency; businesses; start-ups; marketing; advertising; customer service; job
interviews; resumes; leadership; teamwork; time management; public speaking; negotiation; remote work; meetings;
project management; farming; tractors; fishing; factories; shops; supermarkets; online shopping; clothes; shoes;
hats; jewellery; fashion; perfume; haircuts; mirrors; clocks; calendars; maps; compasses; travel; hotels;
camping; beaches; passports; trains in Japan; Paris; London; New York; Tokyo; Rome; Berlin; Cairo; Sydney;
Brazil; Canada; China; India; Mexico; Italy; Spain; France; Germany; Egypt; Kenya; Australia; Antarctica;
Africa; Europe; Asia; the Nile; the Amazon; Mount Everest; the Great Wall of China; the pyramids; ancient Rome;
ancient Greece; the Middle Ages; knights; castles; pirates; Vikings; samurai; the Renaissance; the French
Revolution; the Industrial Revolution; World War II; the Cold War; democracy; elections; laws; judges; police;
firefighters; human rights; taxes on sugar; philosophy; ethics; religion; Buddhism; myths; Zeus; dragons;
unicorns; ghosts; vampires; superheroes; Shakespeare; Albert Einstein; Isaac Newton; Marie Curie; Leonardo da
Vinci; Mozart; Cleopatra; Napoleon; Abraham Lincoln; Gandhi; numbers; fractions; decimals; percentages; algebra;
geometry; triangles; circles; the Pythagorean theorem; pi; probability; statistics; averages; graphs; calculus;
logic; infinity; zero; negative numbers; square roots; physics; motion; friction; speed; energy; heat; light;
sound; atoms; molecules; chemistry; acids; metals; gold; iron; diamonds; plastic; glass; paper; wood; cotton;
concrete; the seasons; spring; summer; autumn; Christmas; birthdays; weddings; holidays; gifts; parties; jokes;
languages; English; Spanish; French; sign language; the alphabet; colours; the colour red; green; shapes; the
five senses; taste; smell; touch; kindness; honesty; courage; patience; hope; luck; success; failure; habits;
goals; learning a language; moving to a new city; adopting a dog; growing vegetables; fixing a bike; painting a
room; packing a suitcase; planning a trip; making friends; falling asleep; waking up early; studying for a test;
writing a book; giving feedback
""".strip()
    .replace("\n", " ")
    .split("; ")
)


PAIR_FORMS = """What is the difference between {} and {}?
What do {} and {} have in common?
Which matters more, {} or {}?
Write a short story about {} and {}.
Write a poem that mentions {} and {}.
Compare {} with {}.
How does {} affect {}?
Should I choose {} or {}?
Explain {} by talking about {}.
Write a dialogue between a fan of {} and a fan of {}.""".splitlines()

STYLES = """{} Keep it short.
{} Answer in one sentence.
{} Answer in three sentences.
{} Use a numbered list.
{} Use simple words.
{} Give an example.
{} Be funny.
{} Explain step by step.
Please help me: {}
I am a teacher. {}
I am ten years old. {}
I am a student and have an exam tomorrow. {}
As an expert, answer this: {}
My friend asked me this: {}
Hello! {}
Quick question: {}""".splitlines()

TALK = (
    """hi; hello; hey; hi there; hello there; good morning; good evening; hey, how are you; how are you; how is it
going; what's up; who are you; what are you; what is your name; what can you do; can you help me; I need help;
thanks; thank you; thank you very much; that was helpful; bye; goodbye; see you later; good night; are you a
robot; are you human; are you there; how old are you; where are you from; who made you; do you sleep; do you
have feelings; tell me a joke; tell me a story; tell me something interesting; sing me a song; I am bored; I am
sad; I am happy; I am tired; I had a bad day; I don't know what to ask; let's talk; can we talk; nice to meet
you; you are great; you are wrong; I don't understand; what do you mean; never mind; yes; no; maybe; okay; test;
help; what should I ask you; what do you know; surprise me
""".strip()
    .replace("\n", " ")
    .split("; ")
)

NAMES = ("my friend Anna", "my dog", "Tom", "my grandmother", "everyone", "my teacher", "Lisa", "Max", "my cat")

TASKS = (
    """reverses a string; adds two numbers; finds the largest number in a list; counts the vowels in a word; checks
whether a number is even; computes a factorial; computes the Fibonacci numbers; sorts a list of names; merges
two dictionaries; removes duplicates from a list; checks whether a word is a palindrome; converts Celsius to
Fahrenheit; computes an average; finds the median; reads a file; writes a file; counts the words in a text;
splits a sentence into words; joins words with commas; finds an element by binary search; sorts with quicksort;
sorts with merge sort; sorts with bubble sort; multiplies two matrices; transposes a matrix; flattens a nested
list; generates a random password; rolls two dice; draws a triangle of stars; prints a multiplication table;
counts down from ten; checks a year for being a leap year; computes the area of a circle; computes the greatest
common divisor; turns a number into binary; finds the longest word; capitalises every word; groups items by a
key; measures how long something takes; shuffles a deck of cards; greets a user; validates an email address;
parses a date; keeps a to-do list; implements a stack; implements a queue; implements a linked list; walks
through a tree; finds the shortest path; solves a quadratic equation
""".strip()
    .replace("\n", " ")
    .split("; ")
)

LANGUAGES = ("Python", "JavaScript", "Java", "C", "C++", "Rust", "Go", "Bash")

PROGRAMS = """Write a {} program that {}.
Write a {} function that {}.
Show me {} code that {}.
Write a short {} script that {}, with comments.
I need a function in {} which {}.""".splitlines()

FOLLOW_UPS = """Tell me more.
Can you say that in simpler words?
Why?
Give me an example.
Summarize that in one sentence.
What else should I know?
Are you sure?
Can you make it shorter?
Can you make it longer?
Explain the first point.
Explain the last point.
Now write it as a poem.
Now write it as a list.
How do you know that?
What is the opposite view?
And what about children?
Give me three more.
What would an expert say?
Thanks!
I don't understand.
Translate that into Spanish.
Write a title for it.
Turn it into a quiz question.
What should I do next?""".splitlines()
"""What people say to an answer."""


def general_questions(count: int, seed: int = 1) -> list[str]:
    """``count`` different questions in random order: half plain, a quarter in a style, the rest about two topics, with
    programs and small talk among them."""
    rng = random.Random(f"questions/{seed}")
    plain = [form.format(topic) for form, topic in product(FORMS, TOPICS)]
    kinds: list[tuple[float, Callable[[], str]]] = [
        (0.5, lambda: rng.choice(plain)),
        (0.25, lambda: rng.choice(STYLES).format(rng.choice(plain))),
        (0.17, lambda: rng.choice(PAIR_FORMS).format(*rng.sample(TOPICS, 2))),
        (0.06, lambda: rng.choice(PROGRAMS).format(rng.choice(LANGUAGES), rng.choice(TASKS))),
        (0.02, lambda: _talk(rng)),
    ]
    weights, makers = zip(*kinds, strict=True)
    asked: dict[str, None] = {}
    while len(asked) < count:
        asked.setdefault(rng.choices(makers, weights)[0]())
    return list(asked)


def _talk(rng: random.Random) -> str:
    """Small talk, as people type it."""
    said = rng.choice(TALK)
    said = rng.choice(
        (said, said.capitalize(), said.capitalize() + rng.choice(".!?"), said + rng.choice((" :)", "!!", "...")))
    )
    return rng.choice((said, f"{said} Say it to {rng.choice(NAMES)}.", f"{rng.choice(('Hi', 'Hello', 'Hey'))}, {said}"))
