//! The settings of a session.

/// What the tool depends on in a session, whatever the defaults of the server are. A change that is not committed is lost at
/// the end (autocommit), a limit truncates results (sql_select_limit, group_concat_max_len), a mode changes the text of views and of strings
/// (sql_mode), and a short idle time ends the session during a load (wait_timeout). The time zone stays that of the server, as in the
/// sessions of an application that does not set one: start_date is a DATETIME.
/// Source: MySQL manual, "Server System Variables"; MariaDB documentation, "Server System Variables".
pub(super) const SESSION: &str = "\
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci,
    SESSION autocommit = 1,
    SESSION completion_type = 'NO_CHAIN',
    SESSION foreign_key_checks = 1,
    SESSION group_concat_max_len = 16777216,
    SESSION max_join_size = 18446744073709551615,
    SESSION sql_auto_is_null = 0,
    SESSION sql_big_selects = 1,
    SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION',
    SESSION sql_safe_updates = 0,
    SESSION sql_select_limit = 18446744073709551615,
    SESSION unique_checks = 1,
    SESSION wait_timeout = 28800
    /*!80000 , SESSION max_execution_time = 0,
    SESSION transaction_isolation = 'REPEATABLE-READ',
    SESSION transaction_read_only = 0 */
    /*M!100300 , SESSION check_constraint_checks = 1,
    SESSION idle_readonly_transaction_timeout = 0,
    SESSION idle_transaction_timeout = 0,
    SESSION idle_write_transaction_timeout = 0,
    SESSION max_statement_time = 0,
    SESSION tx_isolation = 'REPEATABLE-READ',
    SESSION tx_read_only = 0 */";
