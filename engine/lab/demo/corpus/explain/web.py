"""The web: how pages are fetched, described and drawn, and where their data lives."""

from __future__ import annotations

from engine.lab.demo.corpus.explain.topic import Topic, topic

WEB: tuple[Topic, ...] = (
    topic(
        "http", "HTTP", "http request server response",
        what=(
            "HTTP is the [protocol|language] in which browsers and servers talk.",
            "HTTP [says|defines] how a request for a page and the response look.",
        ),
        how=(
            "The browser sends an HTTP request, and the server [answers|replies] with a status and the content as "
            "response.",
            "In HTTP a GET request [reads|asks for] data and a POST request [sends|delivers] data to the server.",
        ),
        why=(
            "HTTP matters because every web page [comes|travels] as the response to a request.",
            "Since HTTP is a standard, any browser can [talk|send a request] to any server.",
        ),
        picture=(
            "HTTP is like a [restaurant|cafe]: you order with a request, the server brings the response.",
            "Think of HTTP as [letters|mail]: a request goes out, a response [comes|arrives] from the server.",
        ),
        note=(
            "HTTP status 200 means fine, and 404 means that the server [found|knows] no such page.",
            "HTTPS is HTTP with encryption, so nobody can read the request [on the way|between you and the server].",
        ),
    ),
    topic(
        "html", "HTML", "html page browser tag",
        what=(
            "HTML is the language that [describes|defines] the structure of a web page.",
            "An HTML page is text with tags, which a browser [shows|turns into a picture].",
        ),
        how=(
            "Tags such as h1 and p [mark|name] the parts of an HTML text: headings, paragraphs, [links|images].",
            "The browser reads the HTML tags, [builds|makes] a tree and [draws|paints] the page.",
        ),
        why=(
            "HTML is [simple|open]: every browser can show a page, with nothing to [install|compile].",
            "With HTML one file can hold a whole page: tags, style and [script|program].",
        ),
        picture=(
            "HTML is like the [skeleton|bones] of a page: tags are the bones, CSS is the [skin|clothes].",
            "Think of HTML tags as [labels|signs] that tell the browser what each part is.",
        ),
        note=(
            "Most HTML tags come in pairs, [like|such as] p and /p, around a part of the page.",
            "This program can write small HTML pages that [move|are animated] in your browser.",
        ),
    ),
    topic(
        "css", "CSS", "css style page color",
        what=(
            "CSS is the language that gives a web page its style: colors, [fonts|sizes] and layout.",
            "CSS [tells|says to] the browser how the parts of a page look.",
        ),
        how=(
            "A CSS rule has a selector and properties, [such as|for example] a color for [all|every] heading of a "
            "style.",
            "The browser [matches|compares] CSS selectors with the page and [applies|uses] the style.",
        ),
        why=(
            "CSS keeps style apart from content, so a page can [change|get] its look [easily|in one place].",
            "With CSS one rule can [style|color] a [hundred|thousand] pages.",
        ),
        picture=(
            "CSS is like [clothes|paint] for a page: the same body in another style.",
            "Think of CSS as a [decorator|painter] who picks the color of every wall of the page.",
        ),
        note=(
            "When two CSS rules [disagree|collide], the more exact selector decides the style.",
            "CSS can also animate: a color may [fade|change] slowly on a page.",
        ),
    ),
    topic(
        "canvas", "the HTML canvas", "canvas draw pixel script",
        what=(
            "The HTML canvas is an area of a page on which a script can draw.",
            "A canvas is a [sheet|rectangle] of pixels that a script [fills|paints].",
        ),
        how=(
            "A script asks the canvas for its 2d context and then draws [lines|circles], shapes and text.",
            "To animate, the script clears the canvas, draws [all|everything] and asks for the next frame.",
        ),
        why=(
            "A canvas is [good|right] for games and animations, since a script can draw [thousands of|many] shapes per "
            "frame.",
            "With a canvas you [control|decide] every pixel that is drawn.",
        ),
        picture=(
            "A canvas is like a [painter's|real] canvas: the script holds the brush and draws.",
            "Think of a flip book: the script draws a new [page|picture] on the canvas for each frame.",
        ),
        note=(
            "A canvas forgets shapes: once drawn, they are [only|just] pixels.",
            "Drawing with a [see-through|half clear] color over the canvas leaves trails of old pixels.",
        ),
    ),
    topic(
        "json", "JSON", "json data text key",
        what=(
            "JSON is a [text format|form of text] for data: objects, lists, numbers and strings.",
            "JSON [writes|stores] data as text that people and programs can read.",
        ),
        how=(
            "A JSON object has keys and values in curly braces; a list of data stands in square brackets.",
            "In Python, json.dumps turns data into [text|a string] and json.loads [reads|parses] it again.",
        ),
        why=(
            "JSON is popular because it is [simple|plain] text that every language can turn into data.",
            "Programs use JSON to [exchange|send] data, as its keys [explain|name] the values.",
        ),
        picture=(
            "JSON is like a [form|questionnaire]: each key is a field, the data is what you [write|fill in].",
            "Think of JSON as [labelled boxes|boxes in boxes]: each key is a label, the data lies inside.",
        ),
        note=(
            "JSON keys must be strings in double quotes, [or|else] the text is not valid.",
            "JSON has no comments and no dates: such data is [written|kept] as text.",
        ),
    ),
    topic(
        "database", "a database", "database data table quer",
        what=(
            "A database stores data so that it can be found and changed [safely|quickly].",
            "A database [keeps|holds] data in tables of rows and columns.",
        ),
        how=(
            "You send a query, and the database [finds|returns] the rows of the table that match.",
            "An index helps the database [find|reach] data without [reading|scanning] the whole table.",
        ),
        why=(
            "A database keeps data safe when many [users|people] change a table at the same time.",
            "Queries let a database answer [questions|requests] that nobody planned when the data was "
            "[stored|collected].",
        ),
        picture=(
            "A database is like a [tidy|good] library: you ask with a query, and the data is [brought|fetched].",
            "Think of a database as a [set|cabinet] of tables, with a [clerk|helper] who answers queries.",
        ),
        note=(
            "Most databases [speak|understand] a query language called SQL.",
            "A transaction makes several changes to a database happen [together|as one] or not at all, so data stays "
            "sound.",
        ),
    ),
    topic(
        "api", "an API", "api program call interface",
        what=(
            "An API is the interface through which one program uses another.",
            "An API [lists|defines] the calls that a program [offers|understands].",
        ),
        how=(
            "A program sends a call with the right [values|arguments] to the API and gets [an answer|a result] back.",
            "The documentation of an API [names|lists] each call, what it needs and what it [returns|gives].",
        ),
        why=(
            "An API hides the inside of a program: the interface [stays|remains], even if the rest changes.",
            "With an API, programs can work together and [nobody|no one] has to read the code behind each call.",
        ),
        picture=(
            "An API is like a [menu|waiter]: you call for a dish and need not see the kitchen behind the interface.",
            "Think of an API as a [socket|plug]: any program that fits the interface can [connect|use it].",
        ),
        note=(
            "A web API is called over HTTP and often [answers|replies] to a program in JSON.",
            "A good API is small: few calls, clear names, an interface that is hard to [misuse|use wrongly].",
        ),
    ),
    topic(
        "encryption", "encryption", "encrypt key read secret",
        what=(
            "Encryption [turns|changes] a message into a form that only someone with the key can read.",
            "To encrypt means to [hide|scramble] a text with a secret key.",
        ),
        how=(
            "Encryption mixes the message with a key; the right key [undoes|reverses] it and makes the text readable.",
            "A Caesar cipher encrypts by shifting each letter: the [shift|distance] is the key.",
        ),
        why=(
            "Encryption keeps messages secret, even if [someone|a stranger] can read the [line|wire].",
            "Without encryption, [passwords|letters] on the net could be read by [others|anyone], key or no key.",
        ),
        picture=(
            "Encryption is like a [locked|strong] box: only the key lets you read the letter inside.",
            "Think of encryption as a secret [language|code] that two friends [share|speak] with a key.",
        ),
        note=(
            "Good encryption depends on a secret key, not on a secret [method|algorithm].",
            "With public key encryption one key [locks|closes] a message and another [opens|unlocks] it, so both can "
            "read.",
        ),
    ),
)  # fmt: skip
