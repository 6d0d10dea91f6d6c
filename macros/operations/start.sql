{#- Start the mirrored database, and wait until it runs. -#}
{% macro mirror_start() %}
  {% do adapter.dispatch('mirror_start', 'dbt')() %}
{% endmacro %}

{% macro openmirroring__mirror_start() %}
  {%- for line in adapter.mirrored_database().start() -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}
