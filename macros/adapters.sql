{#- dbt-spark does not quote the schema. -#}
{% macro openmirroring__list_relations_without_caching(schema_relation) %}
  {%- call statement('list_relations_without_caching', fetch_result=true) -%}
    show table extended in {{ schema_relation.quoted(schema_relation.schema) }} like '*'
  {%- endcall -%}
  {{ return(load_result('list_relations_without_caching').table) }}
{% endmacro %}
