{#- A table-like node between its hooks: built in Spark, published and documented. The steps are those of the README, "How a publication works". -#}
{% macro mirror_table(target, sql) %}
  {{ return(adapter.dispatch('mirror_table', 'dbt')(target, sql)) }}
{% endmacro %}

{% macro openmirroring__mirror_table(target, sql) %}
  {%- do adapter.check_name(target) -%}
  {%- set options = mirror_options() -%}
  {%- set incremental = is_incremental() -%}
  {%- for statement in adapter.statements(config.get('sql_header')) -%}
    {#- in the node's own session: Spark takes one statement at a time -#}
    {%- do run_query(statement) -%}
  {%- endfor -%}
  {%- if not options.mirror -%}
    {%- set response = mirror_skip(target, sql, options, incremental) -%}
  {%- elif invocation_args_dict.get('empty') or invocation_args_dict.get('sample') -%}
    {%- set response = mirror_check_only(target, sql, options) -%}
  {%- else -%}
    {%- set response = mirror_publish(target, sql, options, incremental) -%}
  {%- endif -%}
  {%- do store_result('main', response=response) -%}
  {%- do persist_docs(target, model) -%}
{% endmacro %}


{#- The options of the node, checked. -#}
{% macro mirror_options() %}
  {%- set versions = mirror_history_columns().dbt_scd_id if model.config.materialized == 'snapshot' else none -%}
  {{ return(adapter.node_config(model.config, versions)) }}
{% endmacro %}


{% macro mirror_publish(target, sql, options, incremental) %}
  {{ return(adapter.dispatch('mirror_publish', 'dbt')(target, sql, options, incremental)) }}
{% endmacro %}

{% macro openmirroring__mirror_publish(target, sql, options, incremental) %}
  {%- set publication = mirror_begin(target, model.config.materialized == 'incremental') -%} {#- 0 -#}
  {%- set rebuild = '--full-refresh' if should_full_refresh() else none -%}
  {%- do adapter.check_table(publication, rebuild is not none) -%}
  {%- set rows = mirror_rows(target, sql, options, incremental, publication.batch_id) -%}
  {{ return(mirror_publish_rows(publication, target, rows, options, rebuild)) }}
{% endmacro %}


{#- Args:
      rows: as `mirror_rows` returns them
      rebuild: why the mirrored table is to be rebuilt in any case; none if what has changed decides -#}
{% macro mirror_publish_rows(publication, target, rows, options, rebuild) %}
  {{ return(adapter.dispatch('mirror_publish_rows', 'dbt')(publication, target, rows, options, rebuild)) }}
{% endmacro %}

{% macro openmirroring__mirror_publish_rows(publication, target, rows, options, rebuild) %}
  {%- set next = mirror_build(target, rows, publication.batch_id) -%}                      {#- 1 -#}
  {%- do mirror_verify_contract(next, options) -%}                                         {#- 3 -#}
  {%- set description = mirror_description(next) -%}
  {%- set columns = adapter.described_columns(next, description) -%}
  {%- set snapshot = load_cached_relation(target) -%}
  {%- set stored = mirror_description(snapshot) if snapshot and snapshot.is_table and not rows.is_part else none -%}
  {%- set moved = adapter.layout_change(stored, description) -%}
  {%- set rewrite = rows.rewrite or (none if rebuild else adapter.same_files(snapshot, description)) -%}
  {%- set plan = mirror_plan(publication, target, next, columns, options, rewrite, rebuild, moved) -%}   {#- 2 and 3 -#}
  {%- if plan.is_void -%}
    {%- do adapter.drop_relation(next) -%}
    {{ return(adapter.unchanged(publication)) }}
  {%- elif plan.starts_folder and rows.is_part -%}
    {%- set all = adapter.next_rows(mirror_with_part(target, next, rows.rewrite, columns)) -%}
    {{ return(mirror_publish_rows(publication, target, all, options, rebuild)) }}
  {%- endif -%}
  {%- set files = adapter.link_ready_files(publication, description, plan, options)
      or mirror_stage(publication, next, columns, plan, options, rewrite) -%}         {#- 4 -#}
  {%- set version = mirror_snapshot_version(target) if rows.is_part else none -%}
  {%- set manifest = publication.commit(plan, files, version) -%}                          {#- 5 -#}
  {%- do mirror_finish(publication, target, manifest, config.get('partition_by')) -%}      {#- 6 and 7 -#}
  {{ return(adapter.published(manifest)) }}
{% endmacro %}


{#- Open a publication, after whatever an earlier run has left. Most of that was finished when the command began,
    but not without dbt's cache, or what another run has left since.

    Args:
      reads_target: whether the node's SQL may have been compiled from what the relation had before -#}
{% macro mirror_begin(target, reads_target=false) %}
  {%- set publication = adapter.open_publication(target, model) -%}
  {%- set finished = mirror_recover_table(publication, target) -%}
  {%- if finished -%}
    {%- do log('Finished batch ' ~ finished.batch.id ~ ' of ' ~ target ~ ', which an earlier run had left', info=true) -%}
    {%- if reads_target -%}
      {%- do exceptions.raise_compiler_error(
        'An earlier run was interrupted and has just been brought to its end, but this run was compiled without its result. '
        ~ 'Nothing was lost; run it again.'
      ) -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(publication) }}
{% endmacro %}


{#- 0. Bring what an earlier run has committed to its end, and throw away what it has not. There may be no node
    by now, or one with another `partition_by`.

    Returns: the manifest that was brought to its end, or none -#}
{% macro mirror_recover_table(publication, target) %}
  {{ return(adapter.dispatch('mirror_recover_table', 'dbt')(publication, target)) }}
{% endmacro %}

{% macro openmirroring__mirror_recover_table(publication, target) %}
  {%- do adapter.tidy_warehouse(target) -%}
  {%- set manifest = publication.pending() -%}
  {%- if manifest -%}
    {%- do mirror_finish(publication, target, manifest, true) -%}
  {%- endif -%}
  {%- for leftover in adapter.leftover_snapshots(target) + adapter.leftover_rows(target) -%}
    {%- do adapter.drop_relation(leftover) -%}
  {%- endfor -%}
  {{ return(manifest) }}
{% endmacro %}


{#- 6 and 7. Every statement and every file operation in here can be repeated. -#}
{% macro mirror_finish(publication, target, manifest, partitioned) %}
  {{ return(adapter.dispatch('mirror_finish', 'dbt')(publication, target, manifest, partitioned)) }}
{% endmacro %}

{% macro openmirroring__mirror_finish(publication, target, manifest, partitioned) %}
  {%- set batch = manifest.batch -%}
  {%- set next = adapter.next_snapshot(target, batch.id) -%}
  {%- set part = adapter.rows_beside(target, 'part', batch.id) -%}
  {%- set is_part = load_cached_relation(part) and not load_cached_relation(next) -%}
  {%- if is_part -%}
    {%- set typed = adapter.rows_beside(target, 'typed_rows', batch.id) -%}
    {%- set new_rows = load_cached_relation(typed) or adapter.rows_beside(target, 'new_rows', batch.id) -%}
    {#- before anything is published: the table may refuse -#}
    {%- do adapter.store_part(publication, manifest, target, part, new_rows) -%}
  {%- elif not load_cached_relation(next) and mirror_batch_id(load_cached_relation(target)) != batch.id -%}
    {%- do adapter.refuse_batch(manifest, target) -%}
  {%- endif -%}
  {%- do publication.publish(manifest) -%}
  {%- if is_part -%}
    {%- do adapter.drop_relation(part) -%}
  {%- else -%}
    {%- do mirror_swap(target, next, partitioned) -%}
  {%- endif -%}
  {%- do publication.complete(manifest) -%}
{% endmacro %}


{#- The next snapshot becomes the snapshot. If there is none, an earlier run has swapped already.

    Args:
      partitioned: whether it may be -#}
{% macro mirror_swap(target, next, partitioned) %}
  {{ return(adapter.dispatch('mirror_swap', 'dbt')(target, next, partitioned)) }}
{% endmacro %}

{% macro openmirroring__mirror_swap(target, next, partitioned) %}
  {%- if load_cached_relation(next) -%}
    {%- set snapshot = load_cached_relation(target) -%}
    {%- if snapshot -%}
      {%- do adapter.drop_relation(snapshot) -%}
    {%- endif -%}
    {%- do adapter.rename_relation(next, target) -%}
  {%- endif -%}
  {%- if load_cached_relation(target) -%}
    {%- if partitioned and adapter.has_partitions_in_catalog(mirror_description(target)) -%}
      {#- the catalog of a session without a metastore forgets them when a table is renamed -#}
      {%- do mirror_find_files(target, true) -%}
    {%- endif -%}
    {%- do adapter.refresh_relation(target) -%}
  {%- endif -%}
{% endmacro %}


{#- `mirror: false`: as dbt-spark, except that the old table is there until the new one is. -#}
{% macro mirror_skip(target, sql, options, incremental) %}
  {{ return(adapter.dispatch('mirror_skip', 'dbt')(target, sql, options, incremental)) }}
{% endmacro %}

{% macro openmirroring__mirror_skip(target, sql, options, incremental) %}
  {%- do adapter.tidy_warehouse(target) -%}
  {%- for leftover in adapter.leftover_rows(target) -%}
    {%- do adapter.drop_relation(leftover) -%}
  {%- endfor -%}
  {%- for leftover in adapter.leftover_snapshots(target) -%}
    {%- if load_cached_relation(target) -%}
      {%- do adapter.drop_relation(leftover) -%}
    {%- else -%}
      {%- do mirror_swap(target, leftover, true) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- set rows = mirror_rows(target, sql, options, incremental) -%}
  {%- set next = mirror_build(target, rows) -%}
  {%- do mirror_verify_contract(next, options) -%}
  {%- if rows.is_part -%}
    {%- do mirror_take_part(target, next, rows.rewrite.new_rows, rows.rewrite.keys) -%}
    {%- do adapter.drop_relation(next) -%}
  {%- else -%}
    {%- do mirror_swap(target, next, config.get('partition_by')) -%}
  {%- endif -%}
  {{ return(load_result('main').response) }}
{% endmacro %}


{#- `--empty` and `--sample`: the SQL must run. A relation is left behind only where there was none, so that
    models downstream can be checked too. -#}
{% macro mirror_check_only(target, sql, options) %}
  {{ return(adapter.dispatch('mirror_check_only', 'dbt')(target, sql, options)) }}
{% endmacro %}

{% macro openmirroring__mirror_check_only(target, sql, options) %}
  {%- do adapter.tidy_warehouse(target) -%}
  {%- set is_history = model.config.materialized == 'snapshot' and not load_cached_relation(target) -%}
  {%- set next = mirror_build(target, mirror_history(target, sql, options) if is_history else adapter.next_rows(mirror_live_rows(sql, options))) -%}
  {%- if load_cached_relation(target) -%}
    {%- do adapter.drop_relation(next) -%}
  {%- else -%}
    {%- do mirror_swap(target, next, config.get('partition_by')) -%}
  {%- endif -%}
  {{ return(adapter.checked_only()) }}
{% endmacro %}
