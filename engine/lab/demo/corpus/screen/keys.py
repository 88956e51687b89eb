"""What keys and commands do. Each is named as the help screen (F1) names it."""

from __future__ import annotations

from engine.lab.demo.corpus.chat.families import Family

KEYS: tuple[Family, ...] = (
    Family(
        "quit",
        ("quit", "exit", "How do I quit?", "how do i exit", "q", "Quit!", "how do I leave"),
        (
            "How [do|can] I [quit|exit|leave|close|end][ this| the program| the chat| the app|]?", ":q", ":wq", ":q!",
            "[quit|exit|leave|close|end][ please| now| the program| this chat|.|!|()]", "exit()", "quit()", "/exit",
            "[I want|I would like] to [quit|leave|exit][.|]", "[Close|End|Leave] [this|the program|the chat][.|]",
            "Let me out[!|]", "How do I get out[ of here|]?", "What is the key to [quit|exit]?", "logout", "Ctrl+Q?",
            "where is the exit", "stop the program", "how to quit", "[Quti|Quite|Exti|Eixt|qiut]", "get me out",
        ),
        (
            "Ctrl+Q quits, and so does /quit. [Everything said here is kept.|The conversation is kept.]",
            "Press Ctrl+Q to leave[, or type /quit|]. [Your conversation is kept.|dflash-chat --continue goes on "
            "later.]",
        ),
        ("ctrl+q",),
    ),
    Family(
        "save",
        ("How do I save?", "how do i save the page", "How can I save the code?", "save", "save it"),
        (
            "How [do|can] I [save|keep|store|download] [it|this|the code|the page|the file|your answer|the program]?",
            "[Save|Keep|Store|Download] [it|this|the code|the page|the file|that][.| please.|!|]", "save to disk",
            "Where is [the file|the page|it|my page] saved?", "Where do [saved files|the files] go?", "how to save",
            "What is the key to save?", "[I want|I would like] to save [it|the page|this][.|]",
            "Write it to a file[.|]",
            "Where did you [save|put] it?", "Can I [save|download|keep] [it|this]?", "Put it into a file[.|]",
        ),
        (
            "Ctrl+S saves the last code block into the folder dflash-out. /save takes its number, or all.",
            "Press Ctrl+S: the last code block goes into dflash-out, never over another file.",
        ),
        ("ctrl+s", "dflash-out"),
    ),
    Family(
        "open",
        ("How do I open the page?", "how do i see the page", "open it", "Open it in the browser"),
        (
            "How [do|can] I [open|view|see|run|try|look at] [it|the page|the animation|this page]?",
            "[Open|Show] [it|the page|this][ in the browser| in my browser|][.|]", "Where do I see the animation?",
            "Can I [see|open] [it|the page] in [a|my] browser?", "How do I [start|play] the [page|animation]?",
        ),
        (
            "/open saves the code block and lets your desktop show it, so a page opens in the browser.",
            "Type /open: it saves the page and opens it in your browser.",
        ),
        ("/open",),
    ),
    Family(
        "stop",
        ("How do I stop?", "how do i stop the answer", "How can I stop you?", "stop"),
        (
            "How [do|can] I [stop|cancel|interrupt|end] [it|you|this|the answer|an answer]?", "[Stop|Halt][!|.|]",
            "What is the key to stop?", "stop writing", "How do I make you stop?", "Stop [it|talking|writing][!|]",
            "Can I [stop|interrupt] [you|an answer]?", "cancel", "How do I abort?", "shut up",
        ),
        (
            "Esc stops the answer and keeps what was written.",
            "Press Esc: the answer stops, and what it wrote is kept.",
        ),
        ("esc",),
    ),
    Family(
        "block",
        ("How do I change the block size?", "what does the block slider do", "how do I set the block size"),
        (
            "How [do|can] I [change|set|choose] the block[ size|]?", "What is the [block|first] slider[ for|]?",
            "What does /block do?", "[Change|Set] the block size[.|]", "Where is the block size?",
            "What is block auto?",
            "What does auto mean[ for the block size|]?", "Which block size [is best|should I take]?",
        ),
        (
            "Block size is how many tokens a round may give: 16 drafts 15. /block takes auto or 2 to 16, and so does "
            "the slider.",
            "Alt+Up and Alt+Down change the block size, /block 8 sets it. With 16 the drafter guesses 15 tokens.",
        ),
        ("block", "15"),
    ),
    Family(
        "temperature",
        ("How do I change the temperature?", "how do i set the temperature", "what does the temp slider do"),
        (
            "How [do|can] I [change|set|raise|lower] the temp[erature|]?", "What is the [temp|second] slider[ for|]?",
            "What does /temp do?", "[Change|Set|Raise] the temperature[.|]", "Where is the temperature?",
            "How do I get another answer?", "Why is the answer always the same?", "Make it more random[.|]",
        ),
        (
            "/temp 0.7 sets the temperature, Alt+Right and Alt+Left change it. At 0 the answer is always the same.",
            "Alt+Right raises the temperature, Alt+Left lowers it, /temp takes a number. 0 is greedy.",
        ),
        ("temp", "alt+right"),
    ),
    Family(
        "race",
        ("How do I see a race?", "how to start the race", "What is the race?", "race", "show me the race"),
        (
            "How [do|can] I [see|start|watch|run] [a|the] race?", "[Show me|Start] [a|the] race[.|]", "what does F6 do",
            "How do I compare [it |]with [plain|normal] decoding?", "How much faster is it?", "Is it really faster?",
            "How do I see the difference[ that DFlash makes|]?", "Race[!|]", "Where is the race?",
            "What does /race do?",
        ),
        (
            "F6 starts a race: the target alone against DFlash, on the same prompt and seed.",
            "Press F6 or type /race: the target alone runs against DFlash on the same question.",
        ),
        ("f6", "target alone"),
    ),
    Family(
        "theme",
        ("How do I change the theme?", "how do i change the colours", "change the theme", "dark mode", "light mode"),
        (
            "How [do|can] I [change|set|choose|switch] the [theme|colours|colors|look]?",
            "Is there a [dark|light] mode?",
            "[Change|Switch] the [theme|colours of the screen|look][.|]", "Which themes [are there|do you have]?",
            "I want [a light|a dark|another] [theme|screen][.|]", "The colours are hard to see[.|]", "themes",
            "I am colour-blind[.|]", "What does /theme do?", "Can I have other [colours|colors|themes]?",
        ),
        (
            "/theme lets you look at the themes and choose one; there are dark and light ones[, and one without "
            "colour|].",
            "Type /theme: you see each theme before you take it. [Some are made for colour-blind eyes.|Dark and light "
            "ones are there.]",
        ),
        ("/theme",),
    ),
    Family(
        "steps",
        ("How do I see a round?", "what is the step view", "how do i look at the steps", "What does F3 do?"),
        (
            "How [do|can] I [see|look at|inspect] [a round|the rounds|the guesses|the drafts|the steps]?", "steps?",
            "[Show me|Open] the [step view|rounds|steps][.|]", "Where do I see what was drafted?",
            "What does /steps do?",
            "Why was a guess rejected?", "How do I see why [a token|a word|it] was [rejected|wrong]?",
        ),
        (
            "F3 opens the step view: one round as a table, with every guess and why it was kept or not.",
            "Press F3: you see each round, what was drafted, what the target said, and why a guess fell.",
        ),
        ("f3", "guess"),
    ),
    Family(
        "slow",
        ("How do I see it in slow motion?", "can you go slower", "what does F5 do", "It is too fast to read"),
        (
            "How [do|can] I [slow it down|watch it slowly|see it slowly]?", "[Slow|Slower][ down|] please[.|]",
            "Is there a slow motion?", "[Show|Play] it in slow motion[.|]", "slow motion",
            "This is too fast for me[.|]",
            "Can I [pause|slow down] [it|the view]?", "What does /pace do?", "You are too fast[.|]",
        ),
        (
            "F5 plays the answer again in slow motion, phase by phase. /pace sets how fast.",
            "Press F5 for slow motion: a round phase by phase. /pace 0.1 shows everything slower.",
        ),
        ("f5", "slow motion"),
    ),
    Family(
        "lens",
        ("What is a lens?", "what does F4 do", "How do I colour by confidence?", "how do i see the confidence"),
        (
            "How [do|can] I [see|show] the [drafter's confidence|confidence|milliseconds]?", "lenses?",
            "What does /lens do?",
            "What are [the |]lenses[ for|]?", "Colour the text by [confidence|time|round][.|]",
            "Where is the confidence?",
        ),
        (
            "F4 changes the lens: the text coloured by verdict, by the drafter's confidence, by round or by time.",
            "A lens colours the text by another figure, such as the drafter's confidence. F4 goes to the next one.",
        ),
        ("f4", "confidence"),
    ),
    Family(
        "new",
        ("How do I start a new chat?", "new chat", "clear", "how do i clear the screen"),
        (
            "How [do|can] I [start|begin] [again|a new chat|a new conversation|from scratch]?", "/clear", "cls",
            "reset",
            "[Clear|Reset|Empty] [the screen|the chat|everything|the conversation][.|]", "start over",
            "Forget everything[.|]",
            "[Delete|Forget] this conversation[.|]", "Let us start again[.|]",
        ),
        (
            "Ctrl+N starts a new chat, and so does /new. [The old one is kept: Ctrl+O lists it.|Ctrl+O lists the older "
            "ones.]",
            "Press Ctrl+N for a new chat. [Older ones are listed by Ctrl+O.|The old one stays in the list of Ctrl+O.]",
        ),
        ("ctrl+n", "ctrl+o"),
    ),
    Family(
        "older",
        ("How do I find an older chat?", "where are my old chats", "How do I go on with an older conversation?"),
        (
            "How [do|can] I [find|open|resume|see|continue] [an old|an older|yesterday's] [chat|conversation]?",
            "history",
            "Where [are|is] [my|the] [old|older|earlier] [chats|conversations|history]?", "Are my chats [saved|kept]?",
            "Do you [remember|keep] our [chats|conversations]?", "Is this conversation saved?", "What does Ctrl+O do?",
        ),
        (
            "Ctrl+O lists older conversations, and dflash-chat --continue goes on with the latest one.",
            "Every conversation is kept: Ctrl+O lists them, --continue goes on with the latest.",
        ),
        ("ctrl+o", "--continue"),
    ),
    Family(
        "copy",
        ("How do I copy the code?", "how can i copy text", "copy it", "How do I copy?"),
        (
            "How [do|can] I [copy|select] [it|the code|the text|your answer|something]?", "What does /copy do?",
            "[Copy|Copy that|Copy the code][ please|][.|]", "How do I get it into my clipboard?",
            "Can I copy [it|this]?",
        ),
        (
            "/copy copies the last code block. Text marked with the mouse is copied by Ctrl+C.",
            "Type /copy for the last code block, or mark text with the mouse and press Ctrl+C.",
        ),
        ("/copy", "ctrl+c"),
    ),
    Family(
        "help",
        ("Which keys are there?", "what are the keys", "How do I use this?", "show me the keys", "commands"),
        (
            "[Which|What] [keys|commands|shortcuts] [are there|do you have|can I use]?", "keys?", "shortcuts",
            "[List|Show] [the|all] [keys|commands|shortcuts][.|]", "Where is the [manual|help|list of keys]?", "man",
            "--help",
            "How do I find [a key|a command|the keys]?", "What does F1 do?", "Is there a [manual|tutorial|help page]?",
            "[What|Which] slash commands [are there|exist]?", "How does this program work?", "usage",
        ),
        (
            "F1 lists every key and command[, and the legend|]. Typing / shows the commands, Ctrl+P finds anything "
            "by name.",
            "Press F1 for all keys and commands. A / in the prompt lists the commands, Ctrl+P is the palette.",
        ),
        ("f1", "ctrl+p"),
    ),
    Family(
        "lesson",
        ("Is there a tour?", "where is the lesson", "show me the lesson", "How can I learn more?"),
        (
            "[Show me|Start|Open] [the lesson|a tour|the tour][.|]", "Is there a [lesson|tour|course|guide]?",
            "/lesson?",
            "[I want to|Can I] learn [more|how it works step by step][.|]", "What is the lesson[ about|]?",
            "Teach me[.|]",
        ),
        (
            "/lesson is a guided tour over a recorded run: speculative decoding in five minutes.",
            "Type /lesson: a tour through speculative decoding, with the real numbers of a recorded run.",
        ),
        ("/lesson",),
    ),
    Family(
        "again",
        ("How do I ask again?", "try again please", "How do I edit my question?", "how do i change my question"),
        (
            "How [do|can] I [retry|repeat|ask again|redo it]?",
            "How [do|can] I [edit|correct|change] [my|the] question?",
            "I made a typo in my question[.|]", "What does /retry do?", "What does /edit do?",
            "Give me another answer[.|]",
            "Can I [edit|change|correct] [my question|what I asked]?",
        ),
        (
            "/retry asks the newest question again, /edit takes it back into the prompt.",
            "Type /retry to ask again, or /edit to change your last question.",
        ),
        ("/retry", "/edit"),
    ),
    Family(
        "plain_run",
        ("How do I turn speculation off?", "turn off the drafter", "How do I switch DFlash off?"),
        (
            "How [do|can] I [turn|switch] [off speculation|speculation off|the drafter off|DFlash off]?",
            "speculation off",
            "[Turn|Switch] [speculation|the drafter|DFlash] off[.|]", "Can you write without the drafter?",
            "How fast are you without the drafter?", "How do I measure the speed-up?", "What does /speculation do?",
        ),
        (
            "/speculation off lets the target write alone, /speculation on brings the drafter back.",
            "Type /speculation off: the target writes alone and its speed is measured. /speculation on brings the "
            "drafter back.",
        ),
        ("/speculation off", "target"),
    ),
    Family(
        "export",
        ("How do I export the answer?", "how can I share this", "export", "How do I show this to others?"),
        (
            "How [do|can] I [export|share|send] [it|this|an answer|the chat]?", "Can I export [it|this]?", "screenshot",
            "[Export|Share] [it|this|the answer][.|]", "How do I make a [picture|web page|recording] of this?",
            "What does /export do?",
        ),
        (
            "/export html makes a page of the answer; svg, cast and json are there too. /markdown writes the chat "
            "as text.",
            "Type /export html for a page with every round, or /markdown for the conversation as text.",
        ),
        ("/export html", "/markdown"),
    ),
)  # fmt: skip
