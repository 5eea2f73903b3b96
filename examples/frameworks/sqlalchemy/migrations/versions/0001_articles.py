import json
from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def execute(name):
    for statement in json.loads(Path("sql/articles_views", name).read_text()):
        op.get_bind().exec_driver_sql(statement)


def upgrade():
    op.create_table(
        "articles",
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("title", sa.String(100), nullable=False),
        sa.Column("views", sa.BigInteger, nullable=False, server_default="0"),
    )
    op.create_index("ix_articles_views", "articles", ["views"])
    execute("up.json")


def downgrade():
    execute("down.json")
    op.drop_table("articles")
