"""Questions that people ask a small chat model: SmolLM2's drafter was trained on answers to these, beside those to
questions that SmolLM2 invents.

None is about a topic of the questions that the drafter is measured with (``measure.engine.acceptance``)."""

from __future__ import annotations

import random
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


def general_questions(count: int, seed: int = 1) -> list[str]:
    """So many different ones, in an order by chance."""
    asked = [form.format(topic) for form, topic in product(FORMS, TOPICS)]
    random.Random(f"questions/{seed}").shuffle(asked)
    return asked[:count]
