{#- The operations of `dbt run-operation`. Each prints its work in lines.

    The adapter checks the arguments. An argument without a value here may be left out. -#}

{#- Show the state of each mirrored table. Nothing is changed, and Spark is not asked.

    Args:
      format: `text`, as without it, or `json` -#}
{% macro mirror_status(format) %}
  {%- do mirror_outcome(adapter.run_operations(graph).status(dict(kwargs, format=format))) -%}
{% endmacro %}

{#- Fail if a mirrored table has failed, or is blocked, missing, held, behind or stale. Nothing is changed, and Spark is not asked.

    Args:
      older_than: how long a publication may be unapplied or unfinished, such as `30m` or `7d`; `2h` without it
      stale_after: how long nothing may have been published of a table; without it any time
      format: `text`, as without it, or `json` -#}
{% macro mirror_check(older_than, stale_after, format) %}
  {%- set given = dict(kwargs, older_than=older_than, stale_after=stale_after, format=format) -%}
  {%- do mirror_outcome(adapter.run_operations(graph).check(given)) -%}
{% endmacro %}

{#- List what was published, batch by batch.

    Args:
      table: `schema.table`, the table alone, or the name or unique id of its node; without it all
      limit: batches of a table; 10 without it
      format: `text`, as without it, or `json` -#}
{% macro mirror_history(table, limit, format) %}
  {%- set given = dict(kwargs, table=table, limit=limit, format=format) -%}
  {%- do mirror_outcome(adapter.run_operations(graph).history(given)) -%}
{% endmacro %}

{#- Write state and history of each mirrored table to a page, target/mirror_report.html. -#}
{% macro mirror_report() %}
  {%- do mirror_outcome(adapter.run_operations(graph).report(kwargs)) -%}
{% endmacro %}

{#- Finish what earlier runs have committed, without building anything. -#}
{% macro mirror_recover() %}
  {%- do mirror_outcome(adapter.run_operations(graph).recover(kwargs)) -%}
{% endmacro %}

{#- Bring back the rows that were published last from the mirrored tables.

    Args:
      table: as for mirror_rebuild; its rows take the place of others that Spark has. Without it all tables that Spark has
        lost -#}
{% macro mirror_restore(table) %}
  {%- do mirror_outcome(adapter.run_operations(graph).restore(dict(kwargs, table=table))) -%}
{% endmacro %}

{#- Publish the difference between the mirrored table and what Spark has of it: after mirror_equals_model has failed.

    Args:
      table: as for mirror_rebuild -#}
{% macro mirror_repair(table) %}
  {%- do mirror_outcome(adapter.run_operations(graph).repair(dict(kwargs, table=table))) -%}
{% endmacro %}

{#- Publish a table as it is in Spark as a rebuild, without computing its rows.

    Args:
      table: `schema.table`, the table alone, or the name or unique id of its node -#}
{% macro mirror_rebuild(table) %}
  {%- do mirror_outcome(adapter.run_operations(graph).rebuild(dict(kwargs, table=table))) -%}
{% endmacro %}

{#- Publish what is held, whatever its tests say; also what `max_deleted` has stopped.

    Args:
      table: `schema.table`, the table alone, or the name or unique id of its node; without it all -#}
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

{#- Drop the table folders of this target that no mirrored node has any more.

    Args:
      dry_run: only list them, as without this argument
      schema: of those to drop; without it all schemas of this target
      table: to drop, `schema.table` or a list of them, also what another target may publish -#}
{% macro mirror_drop_orphans(dry_run, schema, table) %}
  {%- do mirror_outcome(adapter.run_operations(graph).drop_orphans(dict(kwargs, dry_run=dry_run, schema=schema, table=table))) -%}
{% endmacro %}

{#- Start and end the embedded Spark once, as for the layer of a container image, so that later starts are faster.
    Nothing is published, and the landing zone is not asked. -#}
{% macro mirror_prepare() %}
  {%- do mirror_outcome(adapter.run_operations(graph).prepare(kwargs)) -%}
{% endmacro %}

{#- End the embedded Spark that is ready for the next command. -#}
{% macro mirror_stop_spark() %}
  {%- do mirror_outcome(adapter.run_operations(graph).stop_spark(kwargs)) -%}
{% endmacro %}

{#- Apply what was published to the mirrored tables beside a local landing zone, as the service would. -#}
{% macro mirror_replicate() %}
  {%- do mirror_outcome(adapter.run_operations(graph).replicate(kwargs)) -%}
{% endmacro %}

{#- Create the mirrored database that `landing_zone` names, for open mirroring, or change the definition of the one that
    is there. It is not started. What is left out stays as it is; of a new one it is Fabric's default.

    Args:
      default_schema: of tables without a schema; of a new one `dbo`
      retention_days: how long Fabric keeps files that the tables do not need any more, 1 to 30
      change_data_feed: whether its tables have Delta's change data feed -#}
{% macro mirror_create_database(default_schema, retention_days, change_data_feed) %}
  {%- set given = dict(
    kwargs, default_schema=default_schema, retention_days=retention_days, change_data_feed=change_data_feed
  ) -%}
  {%- do mirror_print(adapter.run_operations(graph).mirrored_database().create(given)) -%}
{% endmacro %}

{#- Print the definition of the mirrored database: what `mirroring.json` in Git would hold. -#}
{% macro mirror_definition() %}
  {%- do mirror_print(adapter.run_operations(graph).mirrored_database().definition(kwargs)) -%}
{% endmacro %}

{#- Start the mirrored database, and wait until it runs. -#}
{% macro mirror_start() %}
  {%- do mirror_print(adapter.run_operations(graph).mirrored_database().start(kwargs)) -%}
{% endmacro %}

{#- Stop the mirrored database. A new start begins anew with what is left in the landing zone, for every table.

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
