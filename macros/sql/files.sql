{#- Rows of a table: all, or those of some of its files.

    Args:
      rows: `relation`, `only` and `other_than`, as FileRange has them -#}
{% macro mirror_rows(rows) %}
  {%- if rows.only is not none and not rows.only -%}
    (select * from {{ rows.relation }} where false)
  {%- elif rows.only -%}
    (select * from {{ rows.relation }} where _metadata.file_path in ({{ mirror_literals(rows.only) }}))
  {%- elif rows.other_than -%}
    (select * from {{ rows.relation }} where _metadata.file_name not in ({{ mirror_literals(rows.other_than) }}))
  {%- else -%}
    {{ rows.relation }}
  {%- endif -%}
{%- endmacro %}


{#- Parquet files in a folder, as a table. -#}
{% macro mirror_files(url) %}
  {{- return('parquet.' ~ adapter.quote(mirror_no_pattern(url))) -}}
{% endmacro %}

{#- A path without what has a meaning in a pattern: Spark takes paths for patterns. -#}
{% macro mirror_no_pattern(path) %}
  {{- return(modules.re.sub('([][{}*?])', '\\\\\\1', path)) -}}
{% endmacro %}
