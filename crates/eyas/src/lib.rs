//! Connects a program to its peer over the best transport that the path really lets through.
