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
