{#- The operations of `dbt run-operation`. Each prints its work in lines.

    The adapter checks the arguments. An argument without a value here may be left out. -#}

{#- Show the state of each mirrored table. Nothing is changed, and Spark is not asked.

    Args:
      format: `json` prints one line of JSON -#}
{% macro mirror_status(format) %}
  {%- do mirror_outcome(adapter.run_operations(graph).status(dict(kwargs, format=format))) -%}
{% endmacro %}

{#- Fail if a mirrored table has failed, or is blocked, missing, held, behind or stale. Nothing is changed, and Spark is not
    asked.

    Args:
      older_than: after this time, a publication that is not applied or not finished is a problem
      stale_after: after this time, a table of which nothing was published is a problem. If it is left out, none is
      format: `json` prints one line of JSON -#}
{% macro mirror_check(older_than, stale_after, format) %}
  {%- set given = dict(kwargs, older_than=older_than, stale_after=stale_after, format=format) -%}
  {%- do mirror_outcome(adapter.run_operations(graph).check(given)) -%}
{% endmacro %}

{#- List what was published, batch by batch.

    Args:
      table: one table. If it is left out, all
      limit: the batches of each table
      format: `json` prints one line of JSON -#}
{% macro mirror_history(table, limit, format) %}
  {%- set given = dict(kwargs, table=table, limit=limit, format=format) -%}
  {%- do mirror_outcome(adapter.run_operations(graph).history(given)) -%}
{% endmacro %}

{#- Write state and history of each mirrored table to a page, `target/mirror_report.html`. -#}
{% macro mirror_report() %}
  {%- do mirror_outcome(adapter.run_operations(graph).report(kwargs)) -%}
{% endmacro %}

{#- Finish what killed runs have committed, without building anything. -#}
{% macro mirror_recover() %}
  {%- do mirror_outcome(adapter.run_operations(graph).recover(kwargs)) -%}
{% endmacro %}

{#- Bring back the rows that were published last from the mirrored tables.

    Args:
      table: one table. Its published rows replace those that Spark has. If it is left out, all tables that Spark has lost
        are restored -#}
{% macro mirror_restore(table) %}
  {%- do mirror_outcome(adapter.run_operations(graph).restore(dict(kwargs, table=table))) -%}
{% endmacro %}

{#- Publish the difference between a mirrored table and its rows in Spark, as after `mirror_equals_model` has failed.

    Args:
      table: the table to repair -#}
{% macro mirror_repair(table) %}
  {%- do mirror_outcome(adapter.run_operations(graph).repair(dict(kwargs, table=table))) -%}
{% endmacro %}

{#- Publish the rows that Spark has of a table as a rebuild, without computing them.

    Args:
      table: the table to rebuild -#}
{% macro mirror_rebuild(table) %}
  {%- do mirror_outcome(adapter.run_operations(graph).rebuild(dict(kwargs, table=table))) -%}
{% endmacro %}

{#- Publish held rows, whatever their tests say, also those that `max_deleted` has stopped.

    Args:
      table: one table. If it is left out, all that are held -#}
{% macro mirror_publish(table) %}
  {%- do mirror_outcome(adapter.run_operations(graph).publish_held(dict(kwargs, table=table))) -%}
{% endmacro %}

{#- At the end of a command: publish what has passed its tests. A failure is a failure of the command.

    Args:
      results: of the command -#}
{% macro mirror_publish_tested(results) %}
  {#- `dbt compile` has no results -#}
  {%- if execute and results is defined -%}
    {%- set outcome = adapter.run_operations(graph).publish_tested(dict(kwargs, results=results)) -%}
    {%- for line in outcome.lines -%}{%- do log(line, info=True) -%}{%- endfor -%}
    {%- if outcome.failed -%}
      select raise_error('{{ mirror_literal(outcome.failed | join('\n')) }}')
    {%- endif -%}
  {%- endif -%}
{% endmacro %}

{#- List orphans, which are table folders of this target without a node, or drop them.

    Args:
      dry_run: with `false` they are dropped
      schema: only those in this schema
      table: only these, as `schema.table`, also if another target may publish them -#}
{% macro mirror_drop_orphans(dry_run, schema, table) %}
  {%- do mirror_outcome(adapter.run_operations(graph).drop_orphans(dict(kwargs, dry_run=dry_run, schema=schema, table=table))) -%}
{% endmacro %}

{#- Start and end the embedded Spark once, so that later starts are faster, for the layer of a container image. -#}
{% macro mirror_prepare() %}
  {%- do mirror_outcome(adapter.run_operations(graph).prepare(kwargs)) -%}
{% endmacro %}

{#- End the embedded Spark that is ready for the next command. -#}
{% macro mirror_stop_spark() %}
  {%- do mirror_outcome(adapter.run_operations(graph).stop_spark(kwargs)) -%}
{% endmacro %}

{#- Apply what was published to a local landing zone to Delta tables beside it, as Fabric would. -#}
{% macro mirror_replicate() %}
  {%- do mirror_outcome(adapter.run_operations(graph).replicate(kwargs)) -%}
{% endmacro %}

{#- Create the mirrored database that `landing_zone` names, or change its definition. It is not started. An argument that is
    left out changes nothing. A new database gets Fabric's default.

    Args:
      default_schema: the schema of tables without a schema; `dbo` in a new database
      retention_days: how long Fabric keeps files that the tables no longer need
      change_data_feed: whether all its tables have Delta's change data feed -#}
{% macro mirror_create_database(default_schema, retention_days, change_data_feed) %}
  {%- set given = dict(
    kwargs, default_schema=default_schema, retention_days=retention_days, change_data_feed=change_data_feed
  ) -%}
  {%- do mirror_print(adapter.run_operations(graph).mirrored_database().create(given)) -%}
{% endmacro %}

{#- Print the definition of the mirrored database, as Git has it in `mirroring.json`. -#}
{% macro mirror_definition() %}
  {%- do mirror_print(adapter.run_operations(graph).mirrored_database().definition(kwargs)) -%}
{% endmacro %}

{#- Start the mirrored database, and wait until it runs. -#}
{% macro mirror_start() %}
  {%- do mirror_print(adapter.run_operations(graph).mirrored_database().start(kwargs)) -%}
{% endmacro %}

{#- Stop the mirrored database. A later start loads each table from the files that are still in the landing zone.

    Args:
      confirm: the name of the mirrored database -#}
{% macro mirror_stop(confirm) %}
  {%- do mirror_print(adapter.run_operations(graph).mirrored_database().stop(dict(kwargs, confirm=confirm))) -%}
{% endmacro %}


{% macro mirror_print(lines) %}
  {%- for line in lines -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}

{#- Print what an operation did, and fail if it failed with a table. -#}
{% macro mirror_outcome(outcome) %}
  {%- do mirror_print(outcome.lines) -%}
  {%- if outcome.failed -%}
    {%- do exceptions.raise_compiler_error(outcome.failed | join('\n')) -%}
  {%- endif -%}
{% endmacro %}
