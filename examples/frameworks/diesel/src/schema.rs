// @generated automatically by Diesel CLI.

diesel::table! {
    articles (id) {
        id -> Bigint,
        #[max_length = 100]
        title -> Varchar,
        views -> Bigint,
    }
}
