"""Computing in general: the ideas behind small programs."""

from __future__ import annotations

from engine.lab.demo.corpus.explain.topic import Topic, topic

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
            "Good variable names [explain|describe] a program [better|more clearly] than comments.",
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
)  # fmt: skip
