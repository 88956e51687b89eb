"""Data structures and the algorithms that go with them."""

from __future__ import annotations

from engine.lab.demo.corpus.explain.topic import Topic, topic

STRUCTURES: tuple[Topic, ...] = (
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
)  # fmt: skip
