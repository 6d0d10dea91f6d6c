{#- What an incremental run keeps of the snapshot, because it cannot change, if it has the columns of the next snapshot:
    rows that have no key of a new row, and of Parquet and ORC tables on this machine files.

    Returns: a Part or a Rewrite; none if all is written again, and compared

    Args:
      new_rows: a table
      columns: of the next snapshot, as `incremental_columns` returns them
      touched_by: lists of columns: a row may change if it agrees with a new row in all columns of one; none if any row may -#}
{% macro mirror_rewrite(target, new_rows, columns, options, touched_by) %}
  {{ return(adapter.dispatch('mirror_rewrite', 'dbt')(target, new_rows, columns, options, touched_by)) }}
{% endmacro %}

{% macro openmirroring__mirror_rewrite(target, new_rows, columns, options, touched_by) %}
  {%- if touched_by is none or config.get('clustered_by') -%}
    {{ return(none) }}
  {%- endif -%}
  {%- for column in columns if column.snapshot_type != column.dtype -%}
    {{ return(none) }}
  {%- endfor -%}
  {%- if columns | length != adapter.get_columns_in_relation(target) | length -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set description = mirror_description(target) -%}
  {%- set format = config.get('file_format') or run_query('set spark.sql.sources.default').rows[0][1] -%}
  {%- if not config.get('contract').enforced -%}
    {%- set part = adapter.plan_part(target, description, format, options, new_rows, touched_by) -%}
    {%- if part.after and mirror_is_small(adapter.described_columns(target, description)) -%}
      {#- to look at all rows takes less than to write tables of some -#}
      {%- set part = none -%}
    {%- endif -%}
  {%- endif -%}
  {%- if not part or part.after -%}
    {%- set files = mirror_kept_files(target, new_rows, description, format, options, touched_by) -%}
  {%- endif -%}
  {%- if not part -%}
    {{ return(files) }}
  {%- elif part.before -%}
    {%- do mirror_keep(part.before, mirror_part_before(mirror_replaced(target, files), part)) -%}
  {%- endif -%}
  {{ return(part.keeping(files or none)) }}
{% endmacro %}


{#- The files of the snapshot that the next one is to have too; none if it has none.

    Args:
      format: of the next snapshot -#}
{% macro mirror_kept_files(target, new_rows, description, format, options, touched_by) %}
  {%- set folder = adapter.rewritable_folder(description, format, options) -%}
  {%- if not folder -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set touched = run_query(mirror_touched_files(target, new_rows, touched_by)) if touched_by else none -%}
  {{ return(adapter.plan_rewrite(folder, description, touched)) }}
{% endmacro %}

{% macro mirror_touched_files(target, new_rows, touched_by) %}
  {%- for names in touched_by %}
  select distinct DBT_INTERNAL_DEST._metadata.file_path from {{ target }} as DBT_INTERNAL_DEST
  left semi join {{ new_rows }} as DBT_INTERNAL_SOURCE on {{ mirror_same(names) }}
  {{ 'union' if not loop.last }}
  {%- endfor %}
{% endmacro %}

{#- When two rows agree in some columns; NULL agrees with NULL. -#}
{% macro mirror_same(names) %}
  {%- for name in names -%}
    DBT_INTERNAL_SOURCE.{{ adapter.quote(name) }} <=> DBT_INTERNAL_DEST.{{ adapter.quote(name) }} {{- ' and ' if not loop.last }}
  {%- endfor -%}
{% endmacro %}


{#- The rows of a snapshot that are written again, or that may be.

    Args:
      rewrite: a Rewrite, Part or SameFiles; none if all are -#}
{% macro mirror_replaced(snapshot, rewrite) %}
  {%- if not rewrite -%}
    {{ return(snapshot) }}
  {%- elif rewrite.names_before -%}
    {{ return(mirror_other_files(snapshot, rewrite.names_before)) }}
  {%- elif rewrite.before -%}
    {{ return(rewrite.before) }}
  {%- elif not rewrite.replaced -%}
    {{ return('(select * from ' ~ snapshot ~ ' where false)') }}
  {%- endif -%}
  (select * from {{ snapshot }} where _metadata.file_path in ({{ mirror_literals(rewrite.replaced) }}))
{%- endmacro %}

{#- The rows of the next snapshot that were written for it. -#}
{% macro mirror_written(next, rewrite) %}
  {%- if not rewrite -%}
    {{ return(next) }}
  {%- elif rewrite.new_rows -%}
    {{ return(rewrite.after or next) }}
  {%- endif -%}
  {{ return(mirror_other_files(next, rewrite.kept_names)) }}
{%- endmacro %}

{% macro mirror_other_files(relation, names) -%}
  (select * from {{ relation }} where _metadata.file_name not in ({{ mirror_literals(names) }}))
{%- endmacro %}

{% macro mirror_literals(texts) %}
  {%- for text in texts -%}'{{ mirror_literal(text) }}'{{ ', ' if not loop.last }}{%- endfor -%}
{% endmacro %}


{% macro mirror_description(relation) %}
  {{ return(run_query('describe table extended ' ~ relation)) }}
{% endmacro %}

{#- Let Spark see the files that a table has by now. -#}
{% macro mirror_find_files(relation, partitioned) %}
  {%- if partitioned -%}
    {%- do run_query('alter table ' ~ relation ~ ' recover partitions') -%}
  {%- else -%}
    {%- do run_query('refresh table ' ~ relation) -%}
  {%- endif -%}
{% endmacro %}
