{#- dbt-spark does not quote the schema. -#}
{% macro openmirroring__list_relations_without_caching(schema_relation) %}
  {%- call statement('list_relations_without_caching', fetch_result=true) -%}
    show table extended in {{ schema_relation.quoted(schema_relation.schema) }} like '*'
  {%- endcall -%}
  {{ return(load_result('list_relations_without_caching').table) }}
{% endmacro %}

{#- Catalogs besides Spark's own do not list views as tables. -#}
{% macro openmirroring__list_views(schema_relation) %}
  {{ return(run_query('show views in ' ~ schema_relation.quoted(schema_relation.schema))) }}
{% endmacro %}

{#- The schema of the new name has no catalog for Spark. -#}
{% macro openmirroring__rename_relation(from_relation, to_relation) %}
  {%- set catalog, dot, namespace = to_relation.schema.partition('.') -%}
  {%- if dot and run_query("show catalogs like '" ~ mirror_literal(catalog) ~ "'").rows -%}
    {%- set to_relation = to_relation.incorporate(path={'schema': namespace}) -%}
  {%- endif -%}
  {{ return(spark__rename_relation(from_relation, to_relation)) }}
{% endmacro %}

{#- dbt-spark's returns what `describe` says, without the names that dbt's macros ask for: the deletion records of
    a dbt snapshot would have NULLs. -#}
{% macro openmirroring__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}

{#- With `--empty` and `--sample` a ref is printed as a query, unless it is rendered. -#}
{% macro openmirroring__get_columns_in_relation_raw(relation) %}
  {%- call statement('get_columns_in_relation_raw', fetch_result=true) -%}
    describe extended {{ relation.render() }}
  {%- endcall -%}
  {{ return(load_result('get_columns_in_relation_raw').table) }}
{% endmacro %}


{#- dbt-spark comments on a table only when it creates it: one that has not changed would keep its old description.
    Comments are compared first, because Spark takes long to write one. -#}
{% macro openmirroring__persist_docs(relation, model, for_relation, for_columns) %}
  {%- if for_relation and config.persist_relation_docs() and relation.is_table -%}
    {%- set stored = (adapter.get_columns_in_relation(relation) | first).table_comment -%}
    {%- if (stored or '') != model.description -%}
      {%- do run_query("comment on table " ~ relation ~ " is '" ~ mirror_literal(model.description) ~ "'") -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(spark__persist_docs(relation, model, for_relation, for_columns)) }}
{% endmacro %}

{#- dbt-spark comments on columns only of Delta, Hudi and Iceberg. -#}
{% macro openmirroring__alter_column_comment(relation, column_dict) %}
  {%- set stored = {} -%}
  {%- for column in adapter.get_columns_in_relation(relation) if relation.is_table -%}
    {%- do stored.update({column.name | lower: column.column_comment or ''}) -%}
  {%- endfor -%}
  {%- for name in column_dict if stored.get(name | lower, column_dict[name].description) != column_dict[name].description -%}
    {%- do run_query(
      "alter table " ~ relation ~ " change column " ~ adapter.quote(name)
      ~ " comment '" ~ mirror_literal(column_dict[name].description) ~ "'"
    ) -%}
  {%- endfor -%}
{% endmacro %}


{#- dbt-spark takes an empty option for one that is set. -#}
{% macro openmirroring__file_format_clause() %}
  {{- spark__file_format_clause() if config.get('file_format') -}}
{% endmacro %}

{% macro openmirroring__options_clause() %}
  {{- spark__options_clause() if config.get('options') or config.get('file_format') == 'hudi' -}}
{% endmacro %}

{#- dbt-spark does not quote names, nor all that ends a text. -#}
{% macro openmirroring__partition_cols(label, required=false) %}
  {%- set names = config.get('partition_by') -%}
  {%- if names -%}
    {{ label }} ({{ mirror_quoted(([names] if names is string else names) | unique | list) }})
  {%- endif -%}
{% endmacro %}

{% macro openmirroring__clustered_cols(label, required=false) %}
  {%- set names = config.get('clustered_by') -%}
  {%- if names and config.get('buckets') -%}
    {%- set buckets = config.get('buckets', validator=validation.any[int]) -%}
    {{ label }} ({{ mirror_quoted(([names] if names is string else names) | unique | list) }}) into {{ buckets }} buckets
  {%- endif -%}
{% endmacro %}

{% macro openmirroring__comment_clause() %}
  {%- if config.persist_relation_docs() -%}
    comment '{{ mirror_literal(model.description) }}'
  {%- endif -%}
{% endmacro %}


{#- dbt-spark's ignores the order. To take some values only they are joined by what is in none of them. -#}
{% macro openmirroring__listagg(measure, delimiter_text, order_by_clause, limit_num) %}
  {%- if not order_by_clause -%}
    {{ return(spark__listagg(measure, delimiter_text, order_by_clause, limit_num)) }}
  {%- endif -%}
  {%- set delimiter = "'\\u0001'" if limit_num else delimiter_text -%}
  {%- set joined = 'listagg(' ~ measure ~ ', ' ~ delimiter ~ ') within group (' ~ order_by_clause ~ ')' -%}
  {%- if limit_num -%}
    {%- set joined = 'substring_index(' ~ joined ~ ', ' ~ delimiter ~ ', ' ~ limit_num ~ ')' -%}
    {%- set joined = 'replace(' ~ joined ~ ', ' ~ delimiter ~ ', ' ~ delimiter_text ~ ')' -%}
  {%- endif -%}
  {{ return(joined) }}
{% endmacro %}


{#- Without the header of the model, which has been run. -#}
{% macro openmirroring__get_empty_subquery_sql(select_sql, select_sql_header=none) %}
  {{ return(default__get_empty_subquery_sql(select_sql)) }}
{% endmacro %}


{#- The columns that the check strategy of a dbt snapshot compares, and whether there are new ones. dbt does not
    dispatch this macro, so it has dbt's name. dbt's own compares names with their case, and takes for a new column
    what is none or is named twice: every run would make a version of every row. -#}
{% macro snapshot_check_all_get_existing_columns(node, target_exists, check_cols_config) -%}
  {%- set compared = adapter.compared_columns(node['compiled_code'], check_cols_config) -%}
  {%- if not target_exists -%}
    {{ return((false, [])) }}
  {%- endif -%}
  {%- set target = adapter.get_relation(database=node.database, schema=node.schema, identifier=node.alias) -%}
  {%- set existing = adapter.get_columns_in_relation(target) | map(attribute='name') | map('lower') | list -%}
  {%- set shared = [] -%}
  {%- set added = [] -%}
  {%- for name in compared -%}
    {%- do (shared if name | lower in existing else added).append(adapter.quote(name)) -%}
  {%- endfor -%}
  {{ return((added | length > 0, shared)) }}
{%- endmacro %}
