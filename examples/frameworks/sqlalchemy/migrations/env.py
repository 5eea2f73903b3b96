from alembic import context

import counted
from articles import Base, engine

with engine.connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        # Without this line, check fails, and revision --autogenerate drops the counts.
        include_name=counted.include_name,
    )
    with context.begin_transaction():
        context.run_migrations()
