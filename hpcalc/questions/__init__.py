"""The five questions: evaluates every bound that applies, picks the smallest valid one, returns plain results.

Each result is a frozen dataclass with ``document()`` (plain data under the published keys) and ``exit_code``.
"""
