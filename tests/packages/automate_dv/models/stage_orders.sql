{{ config(materialized='view') }}
{{ automate_dv.stage(
    include_source_columns=true,
    source_model='raw_orders',
    derived_columns={'source': '!shop', 'loaded': 'cast(loaded_at as timestamp)'},
    hashed_columns={
        'order_hk': 'order_id',
        'customer_hk': 'customer_id',
        'order_customer_hk': ['order_id', 'customer_id'],
        'customer_hashdiff': {'is_hashdiff': true, 'columns': ['customer_name']}
    }
) }}
