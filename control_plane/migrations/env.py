"""Runs migrations on the connection that the caller has opened, or writes them as SQL."""

from alembic import context

connection = context.config.attributes.get("connection")
if connection is None:
    context.configure(dialect_name=context.config.get_main_option("dialect"), literal_binds=True)
else:
    context.configure(connection=connection, transactional_ddl=False)
context.run_migrations()
