"""What people ask about that the model knows nothing of, field by field."""

from __future__ import annotations


def names(text: str) -> tuple[str, ...]:
    """A comma-separated list as a tuple."""
    return tuple(name.strip() for name in text.split(","))


COUNTRIES = names(
    "France, Germany, Italy, Spain, Portugal, Poland, Norway, Sweden, Finland, Denmark, Iceland, Ireland, Austria, "
    "Greece,"
    "Turkey, Egypt, Morocco, Kenya, Ghana, Nigeria, Ethiopia, Peru, Chile, Brazil, Argentina, Mexico, Canada, Cuba, "
    "Japan,"
    "China, India, Nepal, Vietnam, Thailand, Korea, Mongolia, Australia, Fiji, Samoa, Ukraine, Romania, Hungary, "
    "Latvia,"
    "the Netherlands, Belgium, Switzerland, Colombia, Bolivia, Uganda, Zambia, Oman, Jordan, Georgia, Bhutan, Laos"
)
CITIES = names(
    "Paris, London, Berlin, Rome, Madrid, Vienna, Prague, Oslo, Lisbon, Athens, Cairo, Nairobi, Tokyo, Kyoto, Seoul, "
    "Delhi,"
    "Mumbai, Sydney, Toronto, Chicago, Boston, New York, Lima, Bogota, Havana, Dublin, Zurich, Munich, Venice, Geneva,"
    "Istanbul, Moscow, Kyiv, Warsaw, Budapest, Helsinki, Bangkok, Hanoi, Manila, Jakarta, Accra, Lagos, Quito, Santiago"
)
PLACES = names(
    "mountain, river, lake, desert, island, city, country, building, bridge, volcano, waterfall, ocean, forest, canyon,"
    "tower, dam, glacier, airport, stadium, castle, planet, animal, bird, fish, snake, tree, ship, church, tunnel, road"
)
PEOPLE = names(
    "Napoleon, Julius Caesar, Cleopatra, Albert Einstein, Isaac Newton, Marie Curie, Leonardo da Vinci, Mozart, "
    "Beethoven,"
    "Shakespeare, Goethe, Picasso, Van Gogh, Frida Kahlo, Gandhi, Nelson Mandela, Abraham Lincoln, George Washington, "
    "Plato,"
    "Aristotle, Galileo, Darwin, Columbus, Marco Polo, Queen Victoria, Elvis Presley, Madonna, Taylor Swift, Beyonce, "
    "Messi,"
    "Ronaldo, Serena Williams, Tom Hanks, Steve Jobs, Bill Gates, Elon Musk, the president, the pope, the king, "
    "Homer, Buddha"
)
EVENTS = names(
    "the French Revolution, the Second World War, the First World War, the Middle Ages, the Roman Empire, the Cold War,"
    "the moon landing, the Renaissance, the Black Death, the fall of Rome, the Industrial Revolution, the Berlin Wall,"
    "the Stone Age, the Silk Road, the Great Fire, the Titanic, the pyramids, the Vikings, the Aztecs, the Ottoman "
    "Empire,"
    "the Battle of Hastings, the Magna Carta, the Olympic Games, the Boston Tea Party, the Maya, the samurai, the "
    "Crusades"
)
ILLS = names(
    "a headache, a cold, the flu, a fever, back pain, a sore throat, an allergy, diabetes, asthma, high blood pressure,"
    "a cough, insomnia, a toothache, a migraine, a rash, stress, anxiety, a broken arm, a burn, heartburn, vitamin D,"
    "aspirin, ibuprofen, antibiotics, a vaccine, a stomach ache, hay fever, acne, anaemia, measles, malaria, covid"
)
LAW = names(
    "my rental contract, a divorce, a speeding ticket, my taxes, a will, copyright, a trademark, a work permit, a visa,"
    "parental leave, a neighbour dispute, a refund, my landlord, an inheritance, a lawsuit, a patent, a loan, "
    "insurance,"
    "data protection law, a marriage contract, the constitution, my pension, a parking fine, custody, a mortgage"
)
DISHES = names(
    "pizza, lasagna, pancakes, chocolate cake, bread, sushi, curry, tomato soup, apple pie, risotto, a salad, paella,"
    "goulash, ramen, tacos, a cheesecake, dumplings, an omelette, falafel, hummus, muffins, a stew, pesto, brownies,"
    "mashed potatoes, roast chicken, fried rice, croissants, ice cream, waffles, chili, kimchi, a smoothie, tea, coffee"
)
NEWS = names(
    "the election, the weather, the football match, the stock market, the war, the economy, the Olympics, the "
    "elections,"
    "the strike, the world cup, the budget, the news, the earthquake, the storm, inflation, the new phone, the space "
    "mission"
)
LANGUAGES = names(
    "French, German, Spanish, Italian, Japanese, Chinese, Russian, Arabic, Latin, Greek, Portuguese, Dutch, Swedish, "
    "Polish,"
    "Turkish, Hindi, Korean, Danish, Finnish, Czech, Hebrew, Swahili, Welsh, Irish, Esperanto, Thai, Hungarian, "
    "Norwegian"
)
MOODS = names(
    "love, the sea, autumn, spring, winter, the moon, friendship, a cat, a dog, rain, mountains, time, hope, "
    "loneliness,"
    "my mother, freedom, the night, a rose, stars, a dragon, a princess, a pirate, coffee, home, war, peace, snow, a "
    "robot,"
    "a brave mouse, a lost key, an old man, the forest, a lighthouse, two sisters, a haunted house, a wizard, a "
    "spaceship"
)
STOCKS = names(
    "Apple, Tesla, Google, Amazon, Bitcoin, gold, silver, oil, Nvidia, Microsoft, Ethereum, Siemens, Toyota, Samsung, "
    "bonds,"
    "index funds, real estate, the euro, the dollar, the yen, crypto, dividends, an ETF, a startup, wheat, copper"
)
OTHER_CODE = names(
    "Java, C, C++, Rust, Go, JavaScript, TypeScript, Ruby, PHP, Perl, Haskell, Kotlin, Swift, Scala, Lua, SQL, Bash, R,"
    "Julia, Fortran, COBOL, assembly, Lisp, Prolog, Erlang, Elixir, C#, MATLAB, Dart, Zig, Ada, Pascal, PowerShell, "
    "Clojure"
)
SCIENCE = names(
    "photosynthesis, black holes, gravity, evolution, atoms, DNA, quantum mechanics, plate tectonics, magnetism, "
    "electricity,"
    "the water cycle, relativity, cells, mitochondria, volcanoes, earthquakes, rainbows, tides, vaccines, enzymes, "
    "neurons,"
    "the big bang, dark matter, radioactivity, the periodic table, thermodynamics, osmosis, entropy, dinosaurs, "
    "fossils,"
    "comets, the ozone layer, climate change, the immune system, the heart, the brain, digestion, protein folding, "
    "lasers,"
    "superconductors, string theory, neutrinos, photons, hurricanes, glaciers, coral reefs, bees, whales, mushrooms, "
    "bacteria"
)
ABSTRACT = names(
    "democracy, capitalism, inflation, socialism, ethics, justice, happiness, love, religion, Buddhism, existentialism,"
    "stoicism, free will, consciousness, art, jazz, opera, impressionism, baroque music, yoga, meditation, marketing,"
    "supply and demand, game theory, psychology, sociology, astrology, feng shui, minimalism, surrealism, blues, "
    "ballet,"
    "the meaning of life, beauty, truth, politics, philosophy, poetry, grammar, feudalism, globalisation, fashion, "
    "karma"
)
TECH = names(
    "blockchain, Bluetooth, 5G, Docker, Kubernetes, Excel, Photoshop, Linux, Windows, Android, an iPhone, a router, "
    "WiFi,"
    "GPS, a hard drive, a battery, a jet engine, a car engine, a fridge, a microwave oven, a telescope, solar panels, "
    "radar,"
    "nuclear power, a wind turbine, a 3D printer, an electric car, a piano, a violin, a camera, a submarine, a "
    "helicopter,"
    "a washing machine, a clock, an elevator, a television, a transistor, a heat pump, a bicycle, a rocket, a "
    "dishwasher"
)
SPORTS = names(
    "football, tennis, chess, basketball, cricket, rugby, golf, baseball, hockey, volleyball, boxing, judo, swimming, "
    "skiing,"
    "surfing, cycling, darts, poker, bridge, rowing, fencing, archery, karate, badminton, table tennis, marathon "
    "running"
)
WORKS = names(
    "Hamlet, Faust, Titanic, Star Wars, The Matrix, Harry Potter, Moby Dick, The Hobbit, Don Quixote, Ulysses, Emma, "
    "Dune,"
    "The Odyssey, Casablanca, Inception, Friends, The Simpsons, The Godfather, Frozen, Jaws, Alien, Carmen, Macbeth, "
    "Dracula,"
    "Frankenstein, War and Peace, Pride and Prejudice, Les Miserables, The Lion King, Avatar, Minecraft, Zelda, Tetris"
)
GIFTS = names(
    "my mother, my father, my boss, my girlfriend, my boyfriend, a friend, my sister, my brother, a wedding, a "
    "birthday,"
    "my teacher, a colleague, Christmas, my grandmother, a baby, a neighbour, my husband, my wife, my daughter, my son"
)
ACTIONS = names(
    "an alarm, a timer, an email, some music, a taxi, a table, a flight, a hotel, a reminder, a photo, a video, a song,"
    "a text message, a phone call, a pizza, the lights, a podcast, a meeting, a calendar entry, a map, a PDF, a picture"
)
MATHS = names(
    "the integral of x squared, the derivative of sin x, the square root of 2, a differential equation, the Riemann "
    "hypothesis,"
    "a matrix inverse, the roots of a cubic, pi to 100 digits, a logarithm, trigonometry, the Pythagorean theorem, "
    "topology,"
    "complex numbers, Bayes' theorem, a normal distribution, an infinite series, group theory, a proof by induction, "
    "calculus,"
    "linear algebra, prime gaps, Fermat's last theorem, the golden ratio, a Fourier transform, eigenvalues, set theory"
)
