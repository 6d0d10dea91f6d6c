{#- Apply what was published to the mirrored tables beside a local landing zone, as the service would. -#}
{% macro mirror_replicate() %}
  {% do adapter.dispatch('mirror_replicate', 'dbt')() %}
{% endmacro %}

{% macro openmirroring__mirror_replicate() %}
  {%- for line in adapter.replicate() -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}
