"""OpenAI's chat API over research sessions: the question is a message, the report is the answer.

`bodies` is what goes in and out, `asked` makes a question of a conversation, `answers` an answer of a report,
`streaming` sends it in pieces, `errors` says what went wrong as those clients read it.
"""
