"""Files that go with a question: read, named in it, and put in front of it for the model. No Textual.

``attachment``: what a file is to the conversation, and the prompt that it makes with a question.
``attachment_reader``: from a path to an attachment, or to words why not; never waits for what can't be a text.
``mentions``: ``@path`` in a question, pasted paths, and what a path that is being typed could become.
"""
