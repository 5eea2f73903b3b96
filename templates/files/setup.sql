{{ script.banner() }}
-- Creates the table, the routines and the views in the current database. Replaces nothing: mysql DATABASE < setup.sql

{{ script.steps(Task::Create) }}
