"""The torch classes of contenders that no well-kept library provides as published.

Loading one loads torch, so the contenders' own files do it inside `build`.
"""
