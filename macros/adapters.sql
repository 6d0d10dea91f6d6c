{#- dbt-spark does not quote the schema. -#}
{% macro openmirroring__list_relations_without_caching(schema_relation) %}
  {%- call statement('list_relations_without_caching', fetch_result=true) -%}
    show table extended in {{ schema_relation.quoted(schema_relation.schema) }} like '*'
  {%- endcall -%}
  {{ return(load_result('list_relations_without_caching').table) }}
{% endmacro %}

{#- dbt-spark's returns what `describe` says, without the names that dbt's macros ask for: the deletion records of
    a dbt snapshot would have NULLs. -#}
{% macro openmirroring__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}


{#- dbt-spark comments on columns only where Delta, Hudi or Iceberg have the table, and on a table only when it
    creates it: what was not rebuilt would keep its old description. -#}
{% macro openmirroring__persist_docs(relation, model, for_relation, for_columns) %}
  {%- if for_relation and config.persist_relation_docs() and relation.is_table -%}
    {%- do run_query("comment on table " ~ relation ~ " is '" ~ mirror_literal(model.description) ~ "'") -%}
  {%- endif -%}
  {%- if for_columns and config.persist_column_docs() and model.columns and relation.is_table -%}
    {%- do alter_column_comment(relation, model.columns) -%}
  {%- endif -%}
{% endmacro %}

{% macro openmirroring__alter_column_comment(relation, column_dict) %}
  {%- for column in adapter.get_columns_in_relation(relation) -%}
    {%- set documented = column_dict.get(column.name) -%}
    {%- if documented and documented.description -%}
      {%- do run_query(
        "alter table " ~ relation ~ " change column " ~ column.quoted ~ " comment '" ~ mirror_literal(documented.description) ~ "'"
      ) -%}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}
