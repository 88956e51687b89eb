"""Computing in general: the ideas behind small programs."""

from __future__ import annotations

from engine.demo.corpus.explain.topic import Topic, topic

COMPUTING: tuple[Topic, ...] = (
    topic(
        "algorithm", "an algorithm", "algorithm step problem input",
        what=(
            "An algorithm is a [list|series] of clear steps that solves a problem.",
            "An algorithm [turns|changes] an input into a result, step by step.",
        ),
        how=(
            "An algorithm takes an input, [follows|works through] its steps and stops with [an answer|a result].",
            "Each step of an algorithm must be [exact|clear], so that a machine can [do|follow] it.",
        ),
        why=(
            "A good algorithm solves a problem in [few|fewer] steps, even when the input is large.",
            "Algorithms matter because the same problem can take [seconds|minutes] or [years|days], depending on the "
            "steps.",
        ),
        picture=(
            "An algorithm is like a [recipe|cake recipe]: the input is flour and eggs, the steps make the cake.",
            "Think of an algorithm as [directions|a route]: each step [brings|leads] you nearer to the solved problem.",
        ),
        note=(
            "The same problem often has several algorithms, [like|such as] quicksort and bubble sort for sorting an "
            "input.",
            "An algorithm is not a program: it is the idea, the steps that a program [writes|spells] out.",
        ),
    ),
    topic(
        "recursion", "recursion", "recurs itself call problem",
        what=(
            "Recursion means that a function calls itself[ with a smaller problem|].",
            "Recursion solves a problem by [solving|using] a smaller problem of the same kind.",
        ),
        how=(
            "A recursive function has a base case that [stops|ends], and a case that calls [itself|the function "
            "itself].",
            "In recursion every call [works on|gets] a smaller problem, until the base case is [reached|hit].",
        ),
        why=(
            "Recursion fits [trees|nested data] well, because [a|each] branch is itself a small tree.",
            "Recursion can make code short: the problem [describes|explains] itself.",
        ),
        picture=(
            "Recursion is like [nested dolls|a doll in a doll]: each one holds a smaller copy of itself.",
            "Think of recursion as [two mirrors|a mirror in a mirror]: the picture holds itself, smaller [each|every] "
            "time.",
        ),
        note=(
            "Without a base case, recursion never [ends|stops]: the function calls itself until the memory is "
            "[full|used up].",
            "Python [limits|stops] recursion at about 1000 nested calls.",
        ),
    ),
    topic(
        "loop", "a loop", "loop repeat while for",
        what=(
            "A loop repeats [some|a few] lines of a program.",
            "A loop runs the same code again, for [each|every] item or while a condition [holds|is true].",
        ),
        how=(
            "A for loop takes the items of a [list|range] one by one; a while loop [checks|tests] a condition first.",
            "Each time round, the loop [runs|executes] its body and then decides [whether|if] to repeat it.",
        ),
        why=(
            "Loops save work: you write a line once and the loop repeats it [a thousand|many] times.",
            "A loop is needed for [any|every] task that repeats, [like|such as] adding up a list.",
        ),
        picture=(
            "A loop is like [running|walking] laps: the same track, repeated for a number of rounds.",
            "Think of a loop as a [song|chorus] that repeats while the music [plays|goes on].",
        ),
        note=(
            "A while loop whose condition never [ends|turns false] runs for ever: an endless loop.",
            "In Python, break leaves a loop, and continue [starts|jumps to] the next [turn|round] of a for loop.",
        ),
    ),
    topic(
        "variable", "a variable", "variable name value program",
        what=(
            "A variable is a name for a value in a program.",
            "A variable [stores|holds] a value, so that a program can use it [later|again].",
        ),
        how=(
            "An [equals sign|assignment] gives a variable its value, and the name then [stands for|means] it.",
            "When a program [meets|reads] the name of a variable, it [uses|takes] its current value.",
        ),
        why=(
            "A variable lets a program [remember|keep] values and gives them a clear name.",
            "Good variable names [explain|show] a program [better|more clearly] than comments.",
        ),
        picture=(
            "A variable is like a [box|jar] with a name on it and a value in it.",
            "Think of a variable as a [label|sticker]: the name [sticks|points] to a value.",
        ),
        note=(
            "In Python a variable can [change|take] its value at any time, even to another kind, under the same name.",
            "A variable inside a function [is|stays] local: other parts of the program cannot see its [name|value].",
        ),
    ),
    topic(
        "function", "a function", "function code argument call",
        what=(
            "A function is a named piece of code that you can call [again and again|many times].",
            "A function takes arguments, runs its code and [returns|gives back] a result.",
        ),
        how=(
            "You call a function by its name with arguments, its code runs, and the [result|value] comes back.",
            "In Python a function [starts|begins] with def, [lists|names] its arguments and contains indented code.",
        ),
        why=(
            "Functions let you write code once and call it [everywhere|anywhere].",
            "A function [hides|covers] detail: to call it, you need only [its name|to know its arguments].",
        ),
        picture=(
            "A function is like a [coffee machine|juicer]: put arguments in, [press|call] it, get a result.",
            "Think of a function as a [worker|helper] that you call by name and give some arguments.",
        ),
        note=(
            "A good function does one thing, and its code [fits|goes] on one screen.",
            "A function can call itself, [which|a call that] is named recursion.",
        ),
    ),
    topic(
        "hash_table", "a hash table", "hash key table value",
        what=(
            "A hash table stores values under keys and finds them [almost|nearly] at once.",
            "A hash table [maps|connects] keys to values[, like a Python dict|].",
        ),
        how=(
            "A hash function turns the key into a number, and that number [says|tells] where in the table the value "
            "lies.",
            "To look up a key, the table hashes it and [goes|jumps] straight to the right [slot|place].",
        ),
        why=(
            "A hash table is fast: finding a key takes [about|nearly] the same time in small and large tables.",
            "Hash tables are used [everywhere|widely], since looking up a value by its key is [so|very] common.",
        ),
        picture=(
            "A hash table is like a [cloakroom|coat check]: the key on your ticket [leads|points] straight to the "
            "hook.",
            "Think of a hash table as [drawers|mail boxes]: the hash of a key [tells|names] the drawer.",
        ),
        note=(
            "Two keys can get the same hash: [this|that] collision is solved by [looking|trying] further in the table.",
            "Keys of a hash table must not change, or the value is [lost|no longer found].",
        ),
    ),
    topic(
        "binary_search", "binary search", "search half middle sorted",
        what=(
            "Binary search finds an item in a sorted list by [halving|cutting in half] the range again and again.",
            "Binary search looks in the middle of a sorted list and [drops|discards] the wrong half.",
        ),
        how=(
            "Binary search compares the middle item: if it is too [small|low], go on in the upper half, "
            "[else|otherwise] in "
            "the lower.",
            "Each step of the search [halves|cuts] the sorted range, until the item is [found|there] or nothing is "
            "left.",
        ),
        why=(
            "Binary search is fast: a sorted list of a million items takes [only|about] 20 steps of the search.",
            "Binary search saves time because [every|each] look at the middle removes half of the [items|list].",
        ),
        picture=(
            "Binary search is like [opening|using] a dictionary in the middle and keeping the right half.",
            "Think of guessing a number: ask for the middle, then search the [right|correct] half.",
        ),
        note=(
            "Binary search works only on a sorted list, [so|hence] sort first.",
            "In Python the module bisect [offers|has] a binary search for sorted lists.",
        ),
    ),
    topic(
        "sorting", "sorting", "sort order list item",
        what=(
            "Sorting puts the items of a list in order.",
            "To sort means to [arrange|order] items, [usually|often] from small to large.",
        ),
        how=(
            "A sort [compares|looks at] items and swaps those that are in the wrong order.",
            "Quicksort splits a list around a pivot and sorts both parts; merge sort [merges|joins] sorted "
            "[halves|lists].",
        ),
        why=(
            "Sorting [helps|pays] because a list in order can be searched [quickly|fast].",
            "A sorted list shows [the smallest|the largest], the middle and equal items [at once|at a glance], in "
            "order.",
        ),
        picture=(
            "Sorting is like [arranging|putting] cards in your hand in order.",
            "Think of sorting as [lining|queueing] up children by height: order the list by [comparing|swapping].",
        ),
        note=(
            "[Good|Fast] sorting takes about n log n steps for a list of n items.",
            "In Python, sorted returns a new list and list.sort [changes|orders] the old one.",
        ),
    ),
    topic(
        "stack", "a stack", "stack last first top",
        what=(
            "A stack is a [collection|container] where the last item in is the first item out.",
            "A stack [lets|allows] you add and remove items only at the top.",
        ),
        how=(
            "Push puts an item on top of the stack, pop [takes|removes] the top item.",
            "A stack keeps items in a row; [only|just] the last one, the top, can be [reached|taken].",
        ),
        why=(
            "A stack is useful for undo: the last [change|step] is the first to be [undone|taken back].",
            "Programs use a stack for function calls: the last function called [returns|ends] first.",
        ),
        picture=(
            "A stack is like a pile of plates: you [take|lift] the one on top first.",
            "Think of a stack of [books|boxes]: the last one you [put|laid] down is on top.",
        ),
        note=(
            "In Python a list works as a stack: append pushes, pop [takes|returns] the last item.",
            "Popping from an empty stack is an error, so [check|test] first[ whether anything is on top|].",
        ),
    ),
    topic(
        "queue", "a queue", "queue first item end",
        what=(
            "A queue is a collection where the first item in is the first item out.",
            "A queue [keeps|holds] items in the order of arrival: first come, first [served|out].",
        ),
        how=(
            "New items join the queue at the end, and the first item [leaves|is taken] at the front.",
            "Enqueue adds an item at the end, dequeue [removes|takes] the first one from the queue.",
        ),
        why=(
            "A queue is fair: the item that [waited|has waited] longest comes first.",
            "Queues connect a fast and a slow part of a program, as items can [wait|rest] at the end.",
        ),
        picture=(
            "A queue is like the line at a [bakery|cinema]: the first person is served first, new ones join the end.",
            "Think of a queue as a [tunnel|pipe]: the first car in is the first to [leave|reach the end].",
        ),
        note=(
            "In Python use collections.deque for a queue: taking the first item of a list is [slow|costly].",
            "A priority queue is different: the most [important|urgent] item comes first.",
        ),
    ),
    topic(
        "linked_list", "a linked list", "list node next link",
        what=(
            "A linked list is a chain of nodes, [each|every one] with a value and a link to the next node.",
            "A linked list [stores|keeps] items in nodes that [point|lead] to the next one.",
        ),
        how=(
            "To walk a linked list, start at the head and follow next until there is no [more|further] node.",
            "To insert an item, [change|set] two links: the new node points to the next, the old node to the new.",
        ),
        why=(
            "A linked list can grow at the front without moving [other|any] nodes of the list.",
            "Linked lists are good when nodes are [often|frequently] added and [removed|deleted].",
        ),
        picture=(
            "A linked list is like a treasure hunt: each node [tells|shows] where the next one is.",
            "Think of a train: each wagon is a node with a link to the next [one|wagon].",
        ),
        note=(
            "Finding item number n in a linked list is slow: you must follow n [links|nodes].",
            "A doubly linked list also has links [back|backwards], from each node to the one before.",
        ),
    ),
    topic(
        "tree", "a tree in computing", "tree node root child",
        what=(
            "A tree is made of nodes: one root, and each node can have [child nodes|children].",
            "A tree [arranges|orders] data in levels, from the root [down|out] to the leaves.",
        ),
        how=(
            "You start at the root of the tree and [go|walk] to a child, until you reach a leaf.",
            "In a binary search tree smaller values are in the left child, larger ones in the [right|other] node.",
        ),
        why=(
            "Trees [model|fit] nested things well, [like|such as] folders: each node holds its children.",
            "A balanced tree finds a node in few steps, [even|also] among millions, counted from the root.",
        ),
        picture=(
            "A tree in computing is like a family tree: [parents|mothers] above, each child node below.",
            "Think of [a tree upside down|an upside down tree]: the root is on top, the leaf nodes hang below.",
        ),
        note=(
            "A tree has no [cycles|loops]: there is exactly one way from the root to each node.",
            "Recursion suits a tree, because every child is the root of a [smaller|little] tree.",
        ),
    ),
    topic(
        "graph", "a graph in computing", "graph node edge path",
        what=(
            "A graph is a set of nodes [joined|connected] by edges.",
            "A graph [shows|describes] how things are connected: nodes are the things, edges the [links|connections].",
        ),
        how=(
            "A program stores a graph as a list of neighbours for each node, and walks [along|over] the edges.",
            "Breadth first search explores a graph in [rings|layers] and finds the shortest path from a node.",
        ),
        why=(
            "Graphs [model|describe] roads and networks: a path along edges is a [route|way].",
            "With a graph one can ask [whether|if] a path between two nodes exists.",
        ),
        picture=(
            "A graph is like a map of [trains|the underground]: stations are nodes, [lines|tracks] are edges.",
            "Think of [friends|people] in a graph: each person is a node, each friendship an edge.",
        ),
        note=(
            "Edges of a graph can have a direction or a weight, [like|such as] the length of a path.",
            "A tree is a graph [in which there is|with] one path between any two nodes.",
        ),
    ),
    topic(
        "big_o", "big O notation", "big step input grow",
        what=(
            "Big O notation says how the number of steps grows with the [size|length] of the input.",
            "Big O describes the growth of an algorithm: [constant|linear], quadratic and so on, as the input grows.",
        ),
        how=(
            "Count the steps for an input of size n, keep the [largest|fastest growing] part and drop factors: that "
            "is big "
            "O.",
            "One loop over the input is O(n) in big O; a loop in a loop [is|gives] O(n squared).",
        ),
        why=(
            "Big O matters when the input grows: [a|the] slow algorithm becomes [useless|hopeless].",
            "Big O lets you compare algorithms by steps, [without|not by] running them on a machine.",
        ),
        picture=(
            "Big O is like asking how the work grows when the [party|dinner] gets twice as big.",
            "Think of big O as the [slope|shape] of a road: how steeply the steps grow.",
        ),
        note=(
            "Binary search is O(log n): if the input doubles, it takes [one|a single] step more, so big inputs are "
            "fine.",
            "Big O [ignores|hides] constant factors, so for a small input the [other|simple] algorithm may need fewer "
            "steps.",
        ),
    ),
    topic(
        "python_list", "a Python list", "list item python index",
        what=(
            "A Python list holds items in order, and you can [change|extend] it.",
            "A list is Python's [basic|standard] sequence: any number of items in square brackets.",
        ),
        how=(
            "You read an item of a list by its index, [starting|counting] from zero, and append new ones at the end.",
            "Slices take a part of a Python list: the first index is [included|in], the last one is not.",
        ),
        why=(
            "A list is handy because items can be added, removed and [sorted|changed] in Python with one [call|line].",
            "Lists keep the order of items, [so|hence] a Python loop [sees|visits] them one by one.",
        ),
        picture=(
            "A Python list is like a [train|row of boxes]: each item has a place with an index.",
            "Think of a shopping list: you can [add|cross out] items, and each has its index.",
        ),
        note=(
            "Index -1 [is|means] the last item of a Python list.",
            "A list comprehension builds a list in one [line|expression] of Python from other items.",
        ),
    ),
    topic(
        "dictionary", "a Python dictionary", "dict key value python",
        what=(
            "A Python dictionary stores values under keys.",
            "A dict [maps|connects] each key to [one|a] value, in curly braces.",
        ),
        how=(
            "You write a key in square brackets to read or [set|change] its value in a dict.",
            "Python hashes the key and [finds|reaches] the value of the dict at once.",
        ),
        why=(
            "A dictionary is [handy|useful] for counting: the key is the word, the value its [count|number].",
            "Looking up a key in a dict is fast, [however|no matter how] many values it holds.",
        ),
        picture=(
            "A Python dictionary is like a phone book: the name is the key, the [number|phone number] the value.",
            "Think of a dict as [lockers|labelled drawers]: each key opens the one with its value.",
        ),
        note=(
            "The method get of a dict returns a [default|fallback] value when the key is missing.",
            "Since Python 3.7 a dictionary keeps its keys in the order in which they were [added|inserted].",
        ),
    ),
    topic(
        "class", "a class", "class object method attribute",
        what=(
            "A class is a plan for objects: it [says|defines] which attributes and methods they have.",
            "A class [bundles|joins] data and the methods that work on it into objects of one kind.",
        ),
        how=(
            "You call the class to make an object, and the method named __init__ [sets|fills] its attributes.",
            "Inside a class, methods get the object as self and can [read|change] its attributes.",
        ),
        why=(
            "A class keeps [related|matching] data and methods together, so objects are easy to [use|understand].",
            "With a class you can make [many|several] objects of the same kind, [each|every one] with its own "
            "attributes.",
        ),
        picture=(
            "A class is like a [cookie cutter|cake mould], and objects are the [cookies|cakes].",
            "Think of a class as a [blueprint|plan] and of each object as a house built from it.",
        ),
        note=(
            "A class can inherit from another one and [take over|reuse] its methods and attributes.",
            "Objects of a Python class often have a method __repr__ that [shows|prints] their attributes.",
        ),
    ),
    topic(
        "exception", "an exception", "exception error raise try",
        what=(
            "An exception is an error that [stops|interrupts] a program unless it is caught.",
            "Raising an exception is how Python [reports|signals] an error.",
        ),
        how=(
            "Code that may fail goes into try, and except [handles|catches] the error.",
            "When an exception is raised, Python leaves the functions [one by one|in turn] until a try "
            "[catches|takes] it.",
        ),
        why=(
            "Exceptions keep error [handling|code] apart from normal code, and try makes [clear|plain] what may fail.",
            "An exception cannot be [overlooked|missed] like a return code: an error that nobody catches [stops|ends] "
            "the "
            "program.",
        ),
        picture=(
            "An exception is like pulling the [emergency brake|alarm]: an error stops everything until [someone|a "
            "person] "
            "acts.",
            "Think of try as a [safety net|net] below: an exception falls into it [instead of|and not] to the ground.",
        ),
        note=(
            "Catch only the exception you expect; a bare except hides [other|real] errors.",
            "In Python, finally runs [always|in any case], with or without an exception in the try block.",
        ),
    ),
    topic(
        "debugging", "debugging", "bug debug program error",
        what=(
            "Debugging means finding and [fixing|removing] the bugs of a program.",
            "To debug is to [find out|ask] why a program does not do what [it should|you want].",
        ),
        how=(
            "Debugging starts with a way to [repeat|show] the error, then you [narrow|close] in on the line of the "
            "bug.",
            "A debugger [stops|halts] a program at a line and [shows|prints] its variables.",
        ),
        why=(
            "Debugging is needed because [every|almost every] program has bugs.",
            "Good debugging fixes the cause of an error, [not|instead of] its symptom, so the bug stays away.",
        ),
        picture=(
            "Debugging is like [detective work|solving a crime]: the error leaves traces, and you look for the bug.",
            "Think of a bug as a [leak|hole] in a pipe: debugging [finds|means finding] the spot.",
        ),
        note=(
            "Read the last line of an error first: it [names|tells] the kind of bug.",
            "After debugging, write a test, [so that|and] the same bug [cannot|will not] come back.",
        ),
    ),
    topic(
        "test", "a unit test", "test code check function",
        what=(
            "A unit test is code that checks [a small part|one function] of a program.",
            "A test calls a function and checks [its|the] result.",
        ),
        how=(
            "A test [prepares|sets up] an input, calls the function and asserts what the code should return.",
            "A test runner [finds|collects] all tests, runs them and [lists|reports] the checks that failed.",
        ),
        why=(
            "Tests let you change code without [fear|worry]: they check that it still works.",
            "A test [documents|shows] how a function is meant to be used, and it [is|stays] checked.",
        ),
        picture=(
            "A test is like a [smoke alarm|guard]: it checks all the time and [cries|rings] when code breaks.",
            "Think of a test as [tasting|trying] the soup: a quick check before the code is [served|shipped].",
        ),
        note=(
            "A test that [cannot|can never] fail checks nothing.",
            "In Python, pytest runs every function whose name [starts|begins] with test.",
        ),
    ),
    topic(
        "compiler", "a compiler", "compiler program machine code",
        what=(
            "A compiler [translates|turns] a program into machine code.",
            "A compiler is a program that [rewrites|translates] source code into a form that the machine "
            "[runs|executes].",
        ),
        how=(
            "A compiler reads the code, [builds|makes] a tree of it, improves it and [writes|emits] machine code.",
            "First the compiler checks the program for mistakes, then it [creates|writes] code.",
        ),
        why=(
            "A compiler makes a program fast, as machine code runs [directly|without help].",
            "Compilers [find|catch] some mistakes in code before the program [runs|starts].",
        ),
        picture=(
            "A compiler is like a [translator|book translator]: it turns the whole program into another language, the "
            "machine's.",
            "Think of a compiler as a [factory|workshop]: code goes in, a [finished|ready] program comes out.",
        ),
        note=(
            "Python [uses|has] an interpreter: it compiles code to byte code and runs that, with no machine code "
            "[file|left "
            "over].",
            "A compiler can [reorder|change] code, as long as the program does the same.",
        ),
    ),
    topic(
        "git", "git", "git commit version branch",
        what=(
            "Git is a tool that [keeps|records] the versions of your files.",
            "Git stores the history of a project as [a chain of|many] commits.",
        ),
        how=(
            "With git you [stage|choose] changes and commit them; each commit [keeps|stores] a snapshot.",
            "A git branch is a [movable|light] name for a commit, [which|and it] moves on with each new one.",
        ),
        why=(
            "Git lets you go back to any version[ of your work|], as long as there is a commit.",
            "With git several people can work on branches and merge their commits [later|in the end].",
        ),
        picture=(
            "Git is like [saving|a save point] in a game: each commit is a version you can return to.",
            "Think of a git branch as a [side road|path] that [leaves|splits from] the main road and may return.",
        ),
        note=(
            "Write a git commit message that says why, [not only|as well as] what.",
            "A merge conflict in git means that two branches changed the same [line|place]; you [choose|pick] the "
            "version.",
        ),
    ),
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
        "binary_number", "a binary number", "binary number bit two",
        what=(
            "A binary number is written with [two digits only|only two digits]: 0 and 1.",
            "Binary is the [system|way of writing] in which each bit of a number stands for a power of two.",
        ),
        how=(
            "Each place of a binary number counts twice as much as the one to its right: [one|1], two, four, eight.",
            "To get the bits of a number, divide by two again and again and [note|write down] the remainders.",
        ),
        why=(
            "Computers use binary numbers because a [switch|wire] has two states, on and off.",
            "With binary, [any|every] number can be [stored|kept] as a row of bits.",
        ),
        picture=(
            "A binary number is like a row of [lamps|switches]: each bit is on or off.",
            "Think of bits as [weights|coins] of 1, 2, 4 and 8: a binary number says which ones to [use|take].",
        ),
        note=(
            "Eight bits make a byte, [which can hold|enough for] a number from 0 to 255.",
            "In Python, bin shows a number in binary: bin of five [ends|finishes] in 101.",
        ),
    ),
    topic(
        "boolean", "a boolean", "bool true false condition",
        what=(
            "A boolean is a value that is [either|simply] true or false.",
            "Booleans are the [answers|results] of conditions: true or false.",
        ),
        how=(
            "A comparison [gives|yields] a boolean: 3 < 5 is true, 5 < 3 is false.",
            "The words and, or and not combine booleans into [larger|new] conditions.",
        ),
        why=(
            "Booleans let a program decide: if a condition is true, do [this|one thing], else [that|another].",
            "Every loop and every if needs a condition that is true or false.",
        ),
        picture=(
            "A boolean is like a light switch: true is on, false is off.",
            "Think of a boolean as a [gate|door]: a true condition [opens|unlocks] it, a false one does not.",
        ),
        note=(
            "In Python, empty lists and zero count as false in a condition, [most|nearly all] other values as true.",
            "Booleans are named after George Boole, who [studied|wrote about] true and false.",
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
