"""From messages to token ids and from ids to text: tokenizers, chat templates, and what keeps control tokens out."""
